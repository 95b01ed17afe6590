#pragma once
#include <cub/device/device_reduce.cuh>
namespace cub {
struct DeviceHistogram {
  template <typename In, typename Counter, typename Level, typename N>
  static cudaError_t HistogramEven(void* scratch, size_t& bytes, In in, Counter* counts, int levels, Level lower, Level upper, N size,
                                   cudaStream_t = nullptr) {
    if (harness_device::asks_size(scratch, bytes)) { return cudaSuccess; }
    for (int i = 0; i + 1 < levels; ++i) { counts[i] = 0; }
    for (N i = 0; i < size; ++i) {
      if (in[i] < lower || !(in[i] < upper)) { continue; }
      const int bin = int((double(in[i]) - double(lower)) * (levels - 1) / (double(upper) - double(lower)));
      ++counts[bin < levels - 1 ? bin : levels - 2];
    }
    return cudaSuccess;
  }
};
}
