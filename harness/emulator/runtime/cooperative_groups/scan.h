#pragma once
#include <cooperative_groups/reduce.h>
namespace cooperative_groups {
template <typename Group, typename T, typename Join>
T inclusive_scan(const Group& group, T value, Join&& join) {
  for (unsigned step = 1; step < group.size(); step *= 2) {
    const T other = group.shfl_up(value, step);
    if (group.thread_rank() >= step) { value = join(other, value); }
  }
  return value;
}
template <typename Group, typename T>
T inclusive_scan(const Group& group, T value) { return inclusive_scan(group, value, plus<T>()); }
template <typename Group, typename T, typename Join>
T exclusive_scan(const Group& group, T value, Join&& join) {
  const T all = inclusive_scan(group, value, join), before = group.shfl_up(all, 1);
  return group.thread_rank() == 0 ? T() : before;
}
template <typename Group, typename T>
T exclusive_scan(const Group& group, T value) { return exclusive_scan(group, value, plus<T>()); }
}
