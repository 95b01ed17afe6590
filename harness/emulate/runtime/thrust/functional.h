#pragma once
#include <functional>
namespace thrust {
using std::divides;
using std::greater;
using std::less;
using std::minus;
using std::multiplies;
using std::negate;
using std::plus;
template <typename T = void>
struct maximum {
  T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
template <typename T = void>
struct minimum {
  T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
template <typename T>
struct square {
  T operator()(const T& a) const { return a * a; }
};
}
