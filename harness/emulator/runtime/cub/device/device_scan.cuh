#pragma once
#include <cub/device/device_reduce.cuh>
namespace cub {
struct DeviceScan {
  template <typename In, typename Out, typename Join, typename N>
  static cudaError_t InclusiveScan(void* scratch, size_t& bytes, In in, Out out, Join join, N count, cudaStream_t = nullptr) {
    if (harness_device::asks_size(scratch, bytes) || count == 0) { return cudaSuccess; }
    auto sum = in[0];
    out[0] = sum;
    for (N i = 1; i < count; ++i) { out[i] = sum = join(sum, in[i]); }
    return cudaSuccess;
  }
  template <typename In, typename Out, typename Join, typename T, typename N>
  static cudaError_t ExclusiveScan(void* scratch, size_t& bytes, In in, Out out, Join join, T first, N count, cudaStream_t = nullptr) {
    if (harness_device::asks_size(scratch, bytes)) { return cudaSuccess; }
    for (N i = 0; i < count; ++i) {
      const auto value = in[i];
      out[i] = first;
      first = join(first, value);
    }
    return cudaSuccess;
  }
  template <typename In, typename Out, typename N>
  static cudaError_t InclusiveSum(void* scratch, size_t& bytes, In in, Out out, N count, cudaStream_t stream = nullptr) {
    return InclusiveScan(scratch, bytes, in, out, cub::Sum(), count, stream);
  }
  template <typename In, typename Out, typename N>
  static cudaError_t ExclusiveSum(void* scratch, size_t& bytes, In in, Out out, N count, cudaStream_t stream = nullptr) {
    return ExclusiveScan(scratch, bytes, in, out, cub::Sum(), harness_device::ValueOf<In>(), count, stream);
  }
};
}
