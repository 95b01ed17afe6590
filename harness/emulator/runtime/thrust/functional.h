#pragma once
#include <cuda/functional>
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
using ::cuda::maximum;
using ::cuda::minimum;
template <typename T = void>
struct identity {
  const T& operator()(const T& a) const { return a; }
};
template <>
struct identity<void> {
  template <typename T>
  const T& operator()(const T& a) const { return a; }
};
template <typename T>
struct square {
  T operator()(const T& a) const { return a * a; }
};
}
