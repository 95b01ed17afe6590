// Reductions over device memory, done by the host at once. The first call of each asks for the size of its scratch.
#pragma once
#include <cub/operators.h>
#include <emulator/runtime_api.h>
#include <functional>
#include <iterator>
namespace cub {
namespace harness_device {
inline bool asks_size(void* scratch, size_t& bytes) {
  if (scratch == nullptr) { bytes = 256; }
  return scratch == nullptr;
}
template <typename I>
using ValueOf = typename std::iterator_traits<I>::value_type;
// The first of the best in each segment.
template <typename In, typename Out, typename Begin, typename End, typename Worse>
cudaError_t pick(void* scratch, size_t& bytes, In in, Out out, int64_t segments, Begin begin, End end, Worse is_worse) {
  if (asks_size(scratch, bytes)) { return cudaSuccess; }
  for (int64_t s = 0; s < segments; ++s) {
    int64_t best = begin[s];
    for (int64_t i = begin[s]; i < int64_t(end[s]); ++i) { best = is_worse(in[best], in[i]) ? i : best; }
    out[s] = {int(best - begin[s]), in[best]};
  }
  return cudaSuccess;
}
constexpr int FIRST = 0;
}
struct DeviceReduce {
  template <typename In, typename Out, typename N, typename Join, typename T>
  static cudaError_t Reduce(void* scratch, size_t& bytes, In in, Out out, N count, Join join, T first, cudaStream_t = nullptr) {
    return TransformReduce(scratch, bytes, in, out, count, join, [](const auto& value) { return value; }, first);
  }
  template <typename In, typename Out, typename N>
  static cudaError_t Sum(void* scratch, size_t& bytes, In in, Out out, N count, cudaStream_t stream = nullptr) {
    return Reduce(scratch, bytes, in, out, count, cub::Sum(), harness_device::ValueOf<In>(), stream);
  }
  template <typename In, typename Out, typename N>
  static cudaError_t Max(void* scratch, size_t& bytes, In in, Out out, N count, cudaStream_t stream = nullptr) {
    return Reduce(scratch, bytes, in, out, count, cub::Max(), std::numeric_limits<harness_device::ValueOf<In>>::lowest(), stream);
  }
  template <typename In, typename Out, typename N>
  static cudaError_t Min(void* scratch, size_t& bytes, In in, Out out, N count, cudaStream_t stream = nullptr) {
    return Reduce(scratch, bytes, in, out, count, cub::Min(), std::numeric_limits<harness_device::ValueOf<In>>::max(), stream);
  }
  template <typename In, typename Out, typename N>
  static cudaError_t ArgMax(void* scratch, size_t& bytes, In in, Out out, N count, cudaStream_t = nullptr) {
    return harness_device::pick(scratch, bytes, in, out, 1, &harness_device::FIRST, &count, std::less<>());
  }
  template <typename In, typename Out, typename N>
  static cudaError_t ArgMin(void* scratch, size_t& bytes, In in, Out out, N count, cudaStream_t = nullptr) {
    return harness_device::pick(scratch, bytes, in, out, 1, &harness_device::FIRST, &count, std::greater<>());
  }
  template <typename In, typename Out, typename N, typename Join, typename F, typename T>
  static cudaError_t TransformReduce(void* scratch, size_t& bytes, In in, Out out, N count, Join join, F change, T first,
                                     cudaStream_t = nullptr) {
    if (harness_device::asks_size(scratch, bytes)) { return cudaSuccess; }
    for (N i = 0; i < count; ++i) { first = join(first, change(in[i])); }
    *out = first;
    return cudaSuccess;
  }
};
}
