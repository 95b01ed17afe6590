#pragma once
#include <cooperative_groups.h>
namespace cooperative_groups {
#define HARNESS_OPERATION(Name, Expression)                                                       \
  template <typename T = void>                                                                    \
  struct Name {                                                                                   \
    T operator()(const T& a, const T& b) const { return Expression; }                             \
  };
HARNESS_OPERATION(plus, T(a + b))
HARNESS_OPERATION(less, (b < a ? b : a))
HARNESS_OPERATION(greater, (a < b ? b : a))
HARNESS_OPERATION(bit_and, T(a & b))
HARNESS_OPERATION(bit_or, T(a | b))
HARNESS_OPERATION(bit_xor, T(a ^ b))
#undef HARNESS_OPERATION
template <typename Group, typename T, typename Join>
T reduce(const Group& group, const T& value, Join&& join, HARNESS_LINE) {
  return detail::reduce(group.harness_mask(), value, harness_line, join);
}
}
