// thrust's algorithms by those of the standard library; with an execution policy or without.
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
#define HARNESS_WITH_POLICY(Name)                                                                   \
  template <typename... A>                                                                          \
  auto Name(const harness_policy&, A&&... arguments) { return ::thrust::Name(static_cast<A&&>(arguments)...); }
template <typename I, typename F>
I for_each(I first, I last, F f) { std::for_each(first, last, f); return last; }
template <typename I, typename O, typename F>
O transform(I first, I last, O out, F f) { return std::transform(first, last, out, f); }
template <typename I, typename J, typename O, typename F>
O transform(I first, I last, J other, O out, F f) { return std::transform(first, last, other, out, f); }
template <typename I>
auto reduce(I first, I last) { return std::accumulate(first, last, typename std::iterator_traits<I>::value_type()); }
template <typename I, typename T>
T reduce(I first, I last, T start) { return std::accumulate(first, last, start); }
template <typename I, typename T, typename F>
T reduce(I first, I last, T start, F f) { return std::accumulate(first, last, start, f); }
template <typename I, typename U, typename T, typename F>
T transform_reduce(I first, I last, U change, T start, F join) {
  for (; first != last; ++first) { start = join(start, change(*first)); }
  return start;
}
template <typename I, typename O>
O inclusive_scan(I first, I last, O out) { return std::partial_sum(first, last, out); }
template <typename I, typename O, typename T = typename std::iterator_traits<I>::value_type>
O exclusive_scan(I first, I last, O out, T start = T()) { return std::exclusive_scan(first, last, out, start); }
template <typename I>
void sort(I first, I last) { std::sort(first, last); }
template <typename I, typename F>
void sort(I first, I last, F f) { std::sort(first, last, f); }
template <typename I, typename J>
void sort_by_key(I first, I last, J values) {
  std::vector<std::pair<typename std::iterator_traits<I>::value_type, typename std::iterator_traits<J>::value_type>> all;
  for (I i = first; i != last; ++i) { all.emplace_back(*i, values[i - first]); }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < all.size(); ++i) {
    first[i] = all[i].first;
    values[i] = all[i].second;
  }
}
template <typename I, typename T>
void fill(I first, I last, const T& value) { std::fill(first, last, value); }
template <typename I>
void sequence(I first, I last) { std::iota(first, last, typename std::iterator_traits<I>::value_type(0)); }
template <typename I, typename O>
O copy(I first, I last, O out) { return std::copy(first, last, out); }
template <typename I, typename T>
auto count(I first, I last, const T& value) { return std::count(first, last, value); }
template <typename I, typename F>
auto count_if(I first, I last, F f) { return std::count_if(first, last, f); }
template <typename I>
I max_element(I first, I last) { return std::max_element(first, last); }
template <typename I>
I min_element(I first, I last) { return std::min_element(first, last); }
template <typename I, typename O, typename F>
O inclusive_scan(I first, I last, O out, F f) { return std::partial_sum(first, last, out, f); }
template <typename I, typename O, typename T, typename F>
O exclusive_scan(I first, I last, O out, T start, F f) { return std::exclusive_scan(first, last, out, start, f); }
template <typename I, typename O, typename U, typename F>
O transform_inclusive_scan(I first, I last, O out, U change, F join) { return std::transform_inclusive_scan(first, last, out, join, change); }
template <typename I, typename J, typename T>
T inner_product(I first, I last, J other, T start) { return std::inner_product(first, last, other, start); }
template <typename I, typename J, typename T, typename F, typename G>
T inner_product(I first, I last, J other, T start, F join, G multiply) { return std::inner_product(first, last, other, start, join, multiply); }
template <typename I>
void stable_sort(I first, I last) { std::stable_sort(first, last); }
template <typename I, typename F>
void stable_sort(I first, I last, F f) { std::stable_sort(first, last, f); }
template <typename I, typename J, typename F>
void sort_by_key(I first, I last, J values, F is_before) {
  std::vector<std::pair<typename std::iterator_traits<I>::value_type, typename std::iterator_traits<J>::value_type>> all;
  for (I i = first; i != last; ++i) { all.emplace_back(*i, values[i - first]); }
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return is_before(a.first, b.first); });
  for (size_t i = 0; i < all.size(); ++i) {
    first[i] = all[i].first;
    values[i] = all[i].second;
  }
}
template <typename I, typename J>
void stable_sort_by_key(I first, I last, J values) { ::thrust::sort_by_key(first, last, values); }
template <typename I, typename J, typename F>
void stable_sort_by_key(I first, I last, J values, F f) { ::thrust::sort_by_key(first, last, values, f); }
template <typename I, typename T>
void sequence(I first, I last, T start) { std::iota(first, last, start); }
template <typename I, typename T>
void sequence(I first, I last, T start, T step) {
  for (; first != last; ++first, start = start + step) { *first = start; }
}
template <typename I, typename N, typename O>
O copy_n(I first, N count, O out) { return std::copy_n(first, count, out); }
template <typename I, typename O, typename F>
O copy_if(I first, I last, O out, F f) { return std::copy_if(first, last, out, f); }
template <typename I, typename J, typename O, typename F>
O copy_if(I first, I last, J flags, O out, F f) {
  for (; first != last; ++first, ++flags) {
    if (f(*flags)) { *out++ = *first; }
  }
  return out;
}
template <typename I, typename F>
I remove_if(I first, I last, F f) { return std::remove_if(first, last, f); }
template <typename I>
I unique(I first, I last) { return std::unique(first, last); }
template <typename I, typename J, typename O>
O gather(I first, I last, J from, O out) {
  for (; first != last; ++first, ++out) { *out = from[*first]; }
  return out;
}
template <typename I, typename J, typename O>
void scatter(I first, I last, J places, O out) {
  for (; first != last; ++first, ++places) { out[*places] = *first; }
}
template <typename I, typename F>
void generate(I first, I last, F f) { std::generate(first, last, f); }
template <typename I, typename F>
void tabulate(I first, I last, F f) {
  for (ptrdiff_t i = 0; first != last; ++first, ++i) { *first = f(i); }
}
template <typename I, typename T>
void replace(I first, I last, const T& old, const T& value) { std::replace(first, last, old, value); }
template <typename I, typename F>
bool all_of(I first, I last, F f) { return std::all_of(first, last, f); }
template <typename I, typename F>
bool any_of(I first, I last, F f) { return std::any_of(first, last, f); }
template <typename I, typename F>
I max_element(I first, I last, F f) { return std::max_element(first, last, f); }
template <typename I, typename F>
I min_element(I first, I last, F f) { return std::min_element(first, last, f); }
template <typename I>
auto minmax_element(I first, I last) { return std::minmax_element(first, last); }
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
template <typename I, typename J, typename O, typename Same, typename F>
O inclusive_scan_by_key(I first, I last, J values, O out, Same same, F join) {
  using T = typename std::iterator_traits<J>::value_type;
  T sum{};
  for (I at = first; at != last; ++at, ++values, ++out) {
    sum = at != first && same(*(at - 1), *at) ? T(join(sum, *values)) : T(*values);
    *out = sum;
  }
  return out;
}
template <typename I, typename J, typename O>
O inclusive_scan_by_key(I first, I last, J values, O out) {
  return ::thrust::inclusive_scan_by_key(first, last, values, out, std::equal_to<>());
}
template <typename I, typename J, typename O, typename Same>
O inclusive_scan_by_key(I first, I last, J values, O out, Same same) {
  return ::thrust::inclusive_scan_by_key(first, last, values, out, same, std::plus<>());
}
template <typename I, typename J, typename O, typename T = typename std::iterator_traits<J>::value_type>
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
template <typename I, typename O, typename U, typename T, typename F>
O transform_exclusive_scan(I first, I last, O out, U change, T start, F join) {
  return std::transform_exclusive_scan(first, last, out, start, join, change);
}
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
template <typename I, typename N, typename T>
I fill_n(I first, N count, const T& value) { return std::fill_n(first, count, value); }
template <typename I, typename N, typename F>
I for_each_n(I first, N count, F f) { return std::for_each_n(first, count, f); }
template <typename I, typename P, typename T>
void replace_if(I first, I last, P is_old, const T& value) { std::replace_if(first, last, is_old, value); }
template <typename I, typename T>
I remove(I first, I last, const T& value) { return std::remove(first, last, value); }
template <typename I, typename F>
bool none_of(I first, I last, F f) { return std::none_of(first, last, f); }
template <typename I, typename T>
I find(I first, I last, const T& value) { return std::find(first, last, value); }
template <typename I, typename F>
I find_if(I first, I last, F f) { return std::find_if(first, last, f); }
template <typename I, typename J>
bool equal(I first, I last, J other) { return std::equal(first, last, other); }
template <typename I, typename O>
O adjacent_difference(I first, I last, O out) { return std::adjacent_difference(first, last, out); }
template <typename I>
void reverse(I first, I last) { std::reverse(first, last); }
template <typename I, typename O>
O reverse_copy(I first, I last, O out) { return std::reverse_copy(first, last, out); }
template <typename I, typename F>
I partition(I first, I last, F f) { return std::stable_partition(first, last, f); }
template <typename I, typename F>
I stable_partition(I first, I last, F f) { return std::stable_partition(first, last, f); }
template <typename I, typename J, typename O>
O merge(I first, I last, J other, J end, O out) { return std::merge(first, last, other, end, out); }
template <typename I>
bool is_sorted(I first, I last) { return std::is_sorted(first, last); }
template <typename I, typename T>
I lower_bound(I first, I last, const T& value) { return std::lower_bound(first, last, value); }
template <typename I, typename T>
I upper_bound(I first, I last, const T& value) { return std::upper_bound(first, last, value); }
template <typename I, typename J, typename O>
O lower_bound(I first, I last, J values, J end, O out) {
  for (; values != end; ++values, ++out) { *out = std::lower_bound(first, last, *values) - first; }
  return out;
}
template <typename I, typename J, typename O>
O upper_bound(I first, I last, J values, J end, O out) {
  for (; values != end; ++values, ++out) { *out = std::upper_bound(first, last, *values) - first; }
  return out;
}
template <typename I>
auto distance(I first, I last) { return std::distance(first, last); }
HARNESS_WITH_POLICY(adjacent_difference)
HARNESS_WITH_POLICY(equal)
HARNESS_WITH_POLICY(exclusive_scan_by_key)
HARNESS_WITH_POLICY(fill_n)
HARNESS_WITH_POLICY(find)
HARNESS_WITH_POLICY(find_if)
HARNESS_WITH_POLICY(for_each_n)
HARNESS_WITH_POLICY(inclusive_scan_by_key)
HARNESS_WITH_POLICY(is_sorted)
HARNESS_WITH_POLICY(lower_bound)
HARNESS_WITH_POLICY(merge)
HARNESS_WITH_POLICY(none_of)
HARNESS_WITH_POLICY(partition)
HARNESS_WITH_POLICY(remove)
HARNESS_WITH_POLICY(replace_if)
HARNESS_WITH_POLICY(reverse)
HARNESS_WITH_POLICY(reverse_copy)
HARNESS_WITH_POLICY(stable_partition)
HARNESS_WITH_POLICY(transform_exclusive_scan)
HARNESS_WITH_POLICY(transform_if)
HARNESS_WITH_POLICY(unique_by_key)
HARNESS_WITH_POLICY(upper_bound)
HARNESS_WITH_POLICY(for_each)
HARNESS_WITH_POLICY(transform_inclusive_scan)
HARNESS_WITH_POLICY(inner_product)
HARNESS_WITH_POLICY(stable_sort)
HARNESS_WITH_POLICY(stable_sort_by_key)
HARNESS_WITH_POLICY(copy_n)
HARNESS_WITH_POLICY(copy_if)
HARNESS_WITH_POLICY(remove_if)
HARNESS_WITH_POLICY(unique)
HARNESS_WITH_POLICY(gather)
HARNESS_WITH_POLICY(scatter)
HARNESS_WITH_POLICY(generate)
HARNESS_WITH_POLICY(tabulate)
HARNESS_WITH_POLICY(replace)
HARNESS_WITH_POLICY(all_of)
HARNESS_WITH_POLICY(any_of)
HARNESS_WITH_POLICY(minmax_element)
HARNESS_WITH_POLICY(reduce_by_key)
HARNESS_WITH_POLICY(transform)
HARNESS_WITH_POLICY(reduce)
HARNESS_WITH_POLICY(transform_reduce)
HARNESS_WITH_POLICY(inclusive_scan)
HARNESS_WITH_POLICY(exclusive_scan)
HARNESS_WITH_POLICY(sort)
HARNESS_WITH_POLICY(sort_by_key)
HARNESS_WITH_POLICY(fill)
HARNESS_WITH_POLICY(sequence)
HARNESS_WITH_POLICY(copy)
HARNESS_WITH_POLICY(count)
HARNESS_WITH_POLICY(count_if)
HARNESS_WITH_POLICY(max_element)
HARNESS_WITH_POLICY(min_element)
#undef HARNESS_WITH_POLICY
}
