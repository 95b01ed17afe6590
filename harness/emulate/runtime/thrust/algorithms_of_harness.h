// thrust's algorithms by those of the standard library; with an execution policy or without.
#pragma once
#include <algorithm>
#include <numeric>
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
HARNESS_WITH_POLICY(for_each)
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
