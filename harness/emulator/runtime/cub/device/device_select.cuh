// What is kept of device memory.
#pragma once
#include <cub/device/device_reduce.cuh>
namespace cub {
struct DeviceSelect {
  template <typename In, typename Flags, typename Out, typename Count, typename N>
  static cudaError_t Flagged(void* scratch, size_t& bytes, In in, Flags flags, Out out, Count count, N size, cudaStream_t = nullptr) {
    return keep(scratch, bytes, in, out, count, size, [&](N i) { return bool(flags[i]); });
  }
  template <typename In, typename Out, typename Count, typename N, typename F>
  static cudaError_t If(void* scratch, size_t& bytes, In in, Out out, Count count, N size, F is_kept, cudaStream_t = nullptr) {
    return keep(scratch, bytes, in, out, count, size, [&](N i) { return bool(is_kept(in[i])); });
  }
  template <typename In, typename Out, typename Count, typename N>
  static cudaError_t Unique(void* scratch, size_t& bytes, In in, Out out, Count count, N size, cudaStream_t = nullptr) {
    return keep(scratch, bytes, in, out, count, size, [&](N i) { return i == 0 || !(in[i] == in[i - 1]); });
  }

 private:
  template <typename In, typename Out, typename Count, typename N, typename F>
  static cudaError_t keep(void* scratch, size_t& bytes, In in, Out out, Count count, N size, F is_kept) {
    if (harness_device::asks_size(scratch, bytes)) { return cudaSuccess; }
    N kept = 0;
    for (N i = 0; i < size; ++i) {
      if (is_kept(i)) { out[kept++] = in[i]; }
    }
    *count = kept;
    return cudaSuccess;
  }
};
}
