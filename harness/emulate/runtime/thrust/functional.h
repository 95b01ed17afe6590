#pragma once
#include <functional>
namespace thrust {
using std::bit_and;
using std::bit_or;
using std::divides;
using std::equal_to;
using std::greater;
using std::greater_equal;
using std::less;
using std::less_equal;
using std::logical_and;
using std::logical_not;
using std::logical_or;
using std::minus;
using std::multiplies;
using std::modulus;
using std::negate;
using std::not_equal_to;
using std::plus;
template <typename T = void>
struct maximum {
  T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
template <typename T = void>
struct minimum {
  T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
template <typename T = void>
struct identity {
  const T& operator()(const T& a) const { return a; }
};
template <typename T>
struct square {
  T operator()(const T& a) const { return a * a; }
};
}
