// Reductions of the segments of device memory.
#pragma once
#include <cub/device/device_reduce.cuh>
namespace cub {
struct DeviceSegmentedReduce {
  template <typename In, typename Out, typename Begin, typename End, typename Join, typename T>
  static cudaError_t Reduce(void* scratch, size_t& bytes, In in, Out out, int64_t segments, Begin begin, End end, Join join, T first,
                            cudaStream_t = nullptr) {
    if (harness_device::asks_size(scratch, bytes)) { return cudaSuccess; }
    for (int64_t s = 0; s < segments; ++s) {
      T result = first;
      for (int64_t i = begin[s]; i < int64_t(end[s]); ++i) { result = join(result, in[i]); }
      out[s] = result;
    }
    return cudaSuccess;
  }
  template <typename In, typename Out, typename Begin, typename End>
  static cudaError_t Sum(void* scratch, size_t& bytes, In in, Out out, int64_t segments, Begin begin, End end, cudaStream_t = nullptr) {
    return Reduce(scratch, bytes, in, out, segments, begin, end, cub::Sum(), harness_device::ValueOf<In>());
  }
  template <typename In, typename Out, typename Begin, typename End>
  static cudaError_t Max(void* scratch, size_t& bytes, In in, Out out, int64_t segments, Begin begin, End end, cudaStream_t = nullptr) {
    return Reduce(scratch, bytes, in, out, segments, begin, end, cub::Max(), std::numeric_limits<harness_device::ValueOf<In>>::lowest());
  }
  template <typename In, typename Out, typename Begin, typename End>
  static cudaError_t Min(void* scratch, size_t& bytes, In in, Out out, int64_t segments, Begin begin, End end, cudaStream_t = nullptr) {
    return Reduce(scratch, bytes, in, out, segments, begin, end, cub::Min(), std::numeric_limits<harness_device::ValueOf<In>>::max());
  }
  template <typename In, typename Out, typename Begin, typename End>
  static cudaError_t ArgMax(void* scratch, size_t& bytes, In in, Out out, int64_t segments, Begin begin, End end, cudaStream_t = nullptr) {
    return harness_device::pick(scratch, bytes, in, out, segments, begin, end, std::less<>());
  }
  template <typename In, typename Out, typename Begin, typename End>
  static cudaError_t ArgMin(void* scratch, size_t& bytes, In in, Out out, int64_t segments, Begin begin, End end, cudaStream_t = nullptr) {
    return harness_device::pick(scratch, bytes, in, out, segments, begin, end, std::greater<>());
  }
};
}
