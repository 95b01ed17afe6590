// thrust's algorithms, most of them the standard library's; with an execution policy or without.
#pragma once
#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/device_ptr.h>
namespace thrust {
template <typename I>
using harness_value = typename std::iterator_traits<I>::value_type;

#define HARNESS_WITH_POLICY(Name)                                                                   \
  template <typename... A>                                                                          \
  auto Name(const harness_policy&, A&&... arguments) { return ::thrust::Name(static_cast<A&&>(arguments)...); }
// In every form that the other function has.
#define HARNESS_AS(Name, Function)                                                                  \
  template <typename... A>                                                                          \
  auto Name(A&&... arguments) -> decltype(Function(static_cast<A&&>(arguments)...)) {               \
    return Function(static_cast<A&&>(arguments)...);                                                \
  }                                                                                                 \
  HARNESS_WITH_POLICY(Name)
#define HARNESS_STANDARD(Name) HARNESS_AS(Name, ::std::Name)
HARNESS_STANDARD(adjacent_difference)
HARNESS_STANDARD(all_of)
HARNESS_STANDARD(any_of)
HARNESS_STANDARD(copy)
HARNESS_STANDARD(copy_n)
HARNESS_STANDARD(count)
HARNESS_STANDARD(count_if)
HARNESS_STANDARD(distance)
HARNESS_STANDARD(equal)
HARNESS_STANDARD(fill)
HARNESS_STANDARD(fill_n)
HARNESS_STANDARD(find)
HARNESS_STANDARD(find_if)
HARNESS_STANDARD(for_each_n)
HARNESS_STANDARD(generate)
HARNESS_STANDARD(inner_product)
HARNESS_STANDARD(is_sorted)
HARNESS_STANDARD(max_element)
HARNESS_STANDARD(merge)
HARNESS_STANDARD(min_element)
HARNESS_STANDARD(minmax_element)
HARNESS_STANDARD(none_of)
HARNESS_STANDARD(remove)
HARNESS_STANDARD(remove_if)
HARNESS_STANDARD(replace)
HARNESS_STANDARD(replace_if)
HARNESS_STANDARD(reverse)
HARNESS_STANDARD(reverse_copy)
HARNESS_STANDARD(sort)
HARNESS_STANDARD(stable_partition)
HARNESS_STANDARD(stable_sort)
HARNESS_STANDARD(transform)
HARNESS_STANDARD(unique)
HARNESS_AS(inclusive_scan, ::std::partial_sum)
HARNESS_AS(partition, ::std::stable_partition)

// Others differ from the standard library's in the order or the number of their arguments, or in what they return.
template <typename I, typename F>
I for_each(I first, I last, F f) { std::for_each(first, last, f); return last; }
HARNESS_WITH_POLICY(for_each)
template <typename I, typename T = harness_value<I>, typename F = std::plus<>>
T reduce(I first, I last, T start = T(), F f = F()) { return std::accumulate(first, last, start, f); }
HARNESS_WITH_POLICY(reduce)
template <typename I, typename U, typename T, typename F>
T transform_reduce(I first, I last, U change, T start, F join) {
  for (; first != last; ++first) { start = join(start, change(*first)); }
  return start;
}
HARNESS_WITH_POLICY(transform_reduce)
template <typename I, typename O, typename T = harness_value<I>, typename F = std::plus<>>
O exclusive_scan(I first, I last, O out, T start = T(), F f = F()) { return std::exclusive_scan(first, last, out, start, f); }
HARNESS_WITH_POLICY(exclusive_scan)
template <typename I, typename O, typename U, typename F>
O transform_inclusive_scan(I first, I last, O out, U change, F join) { return std::transform_inclusive_scan(first, last, out, join, change); }
HARNESS_WITH_POLICY(transform_inclusive_scan)
template <typename I, typename O, typename U, typename T, typename F>
O transform_exclusive_scan(I first, I last, O out, U change, T start, F join) {
  return std::transform_exclusive_scan(first, last, out, start, join, change);
}
HARNESS_WITH_POLICY(transform_exclusive_scan)
template <typename I, typename J, typename F = std::less<>>
void sort_by_key(I first, I last, J values, F is_before = F()) {
  std::vector<std::pair<harness_value<I>, harness_value<J>>> all;
  for (I i = first; i != last; ++i) { all.emplace_back(*i, values[i - first]); }
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return is_before(a.first, b.first); });
  for (size_t i = 0; i < all.size(); ++i) {
    first[i] = all[i].first;
    values[i] = all[i].second;
  }
}
HARNESS_WITH_POLICY(sort_by_key)
HARNESS_AS(stable_sort_by_key, ::thrust::sort_by_key)
template <typename I, typename T = harness_value<I>, typename S = T>
void sequence(I first, I last, T start = T(0), S step = S(1)) {
  for (; first != last; ++first, start = start + step) { *first = start; }
}
HARNESS_WITH_POLICY(sequence)
template <typename I, typename O, typename F>
O copy_if(I first, I last, O out, F f) { return std::copy_if(first, last, out, f); }
template <typename I, typename J, typename O, typename F>
O copy_if(I first, I last, J flags, O out, F f) {
  for (; first != last; ++first, ++flags) {
    if (f(*flags)) { *out++ = *first; }
  }
  return out;
}
HARNESS_WITH_POLICY(copy_if)
template <typename I, typename J, typename O>
O gather(I first, I last, J from, O out) {
  for (; first != last; ++first, ++out) { *out = from[*first]; }
  return out;
}
HARNESS_WITH_POLICY(gather)
template <typename I, typename J, typename O>
void scatter(I first, I last, J places, O out) {
  for (; first != last; ++first, ++places) { out[*places] = *first; }
}
HARNESS_WITH_POLICY(scatter)
template <typename I, typename F>
void tabulate(I first, I last, F f) {
  for (ptrdiff_t i = 0; first != last; ++first, ++i) { *first = f(i); }
}
HARNESS_WITH_POLICY(tabulate)
template <typename I, typename J, typename K, typename O>
auto reduce_by_key(I first, I last, J values, K keys, O sums) {
  while (first != last) {
    auto key = *first;
    auto sum = *values;
    for (++first, ++values; first != last && *first == key; ++first, ++values) { sum = sum + *values; }
    *keys++ = key;
    *sums++ = sum;
  }
  return std::make_pair(keys, sums);
}
HARNESS_WITH_POLICY(reduce_by_key)
template <typename I, typename J, typename O, typename Same = std::equal_to<>, typename F = std::plus<>>
O inclusive_scan_by_key(I first, I last, J values, O out, Same same = Same(), F join = F()) {
  harness_value<J> sum{};
  for (I at = first; at != last; ++at, ++values, ++out) {
    sum = at != first && same(*(at - 1), *at) ? harness_value<J>(join(sum, *values)) : harness_value<J>(*values);
    *out = sum;
  }
  return out;
}
HARNESS_WITH_POLICY(inclusive_scan_by_key)
template <typename I, typename J, typename O, typename T = harness_value<J>>
O exclusive_scan_by_key(I first, I last, J values, O out, T start = T()) {
  T sum = start;
  for (I at = first; at != last; ++at, ++values, ++out) {
    if (at == first || !(*(at - 1) == *at)) { sum = start; }
    const T next = T(sum + *values);
    *out = sum;
    sum = next;
  }
  return out;
}
HARNESS_WITH_POLICY(exclusive_scan_by_key)
template <typename I, typename O, typename F, typename P>
O transform_if(I first, I last, O out, F f, P is_wanted) {
  for (; first != last; ++first, ++out) {
    if (is_wanted(*first)) { *out = f(*first); }
  }
  return out;
}
template <typename I, typename J, typename O, typename F, typename P>
O transform_if(I first, I last, J flags, O out, F f, P is_wanted) {
  for (; first != last; ++first, ++flags, ++out) {
    if (is_wanted(*flags)) { *out = f(*first); }
  }
  return out;
}
HARNESS_WITH_POLICY(transform_if)
template <typename I, typename J>
auto unique_by_key(I first, I last, J values) {
  I key = first;
  J value = values;
  for (I at = first; at != last; ++at, ++values) {
    if (at != first && *at == *(key - 1)) { continue; }
    *key++ = *at;
    *value++ = *values;
  }
  return std::make_pair(key, value);
}
HARNESS_WITH_POLICY(unique_by_key)
#define HARNESS_BOUND(Name)                                                                         \
  template <typename I, typename T>                                                                 \
  I Name(I first, I last, const T& value) { return std::Name(first, last, value); }                 \
  template <typename I, typename J, typename O>                                                     \
  O Name(I first, I last, J values, J end, O out) {                                                 \
    for (; values != end; ++values, ++out) { *out = std::Name(first, last, *values) - first; }      \
    return out;                                                                                     \
  }                                                                                                 \
  HARNESS_WITH_POLICY(Name)
HARNESS_BOUND(lower_bound)
HARNESS_BOUND(upper_bound)
#undef HARNESS_BOUND
#undef HARNESS_STANDARD
#undef HARNESS_AS
#undef HARNESS_WITH_POLICY
}
