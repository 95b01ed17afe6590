// What cub's algorithms join values with.
#pragma once
#include <emulator/device_core.h>
namespace cub {
struct Sum {
  template <typename T>
  T operator()(const T& a, const T& b) const { return a + b; }
};
struct Max {
  template <typename T>
  T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
struct Min {
  template <typename T>
  T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
struct Equality {
  template <typename T>
  bool operator()(const T& a, const T& b) const { return a == b; }
};
struct ArgMax {
  template <typename P>
  P operator()(const P& a, const P& b) const { return b.value > a.value || (b.value == a.value && b.key < a.key) ? b : a; }
};
struct ArgMin {
  template <typename P>
  P operator()(const P& a, const P& b) const { return b.value < a.value || (b.value == a.value && b.key < a.key) ? b : a; }
};
template <typename K, typename V>
struct KeyValuePair {
  using Key = K;
  using Value = V;
  K key;
  V value;
  KeyValuePair() = default;
  KeyValuePair(const K& k, const V& v) : key(k), value(v) {}
};
struct NullType {};
}
