// Sorts of the segments of device memory.
#pragma once
#include <cub/device/device_radix_sort.cuh>
namespace cub {
struct DeviceSegmentedRadixSort {
  template <typename K, typename Begin, typename End>
  static cudaError_t SortKeys(void* scratch, size_t& bytes, const K* in, K* out, int64_t, int64_t segments, Begin begin, End end,
                              int = 0, int = 8 * sizeof(K), cudaStream_t = nullptr) {
    if (harness_device::asks_size(scratch, bytes)) { return cudaSuccess; }
    for (int64_t s = 0; s < segments; ++s) { DeviceRadixSort::SortKeys(scratch, bytes, in + begin[s], out + begin[s], int64_t(end[s] - begin[s])); }
    return cudaSuccess;
  }
  template <typename K, typename Begin, typename End>
  static cudaError_t SortKeysDescending(void* scratch, size_t& bytes, const K* in, K* out, int64_t, int64_t segments, Begin begin, End end,
                                        int = 0, int = 8 * sizeof(K), cudaStream_t = nullptr) {
    if (harness_device::asks_size(scratch, bytes)) { return cudaSuccess; }
    for (int64_t s = 0; s < segments; ++s) {
      DeviceRadixSort::SortKeysDescending(scratch, bytes, in + begin[s], out + begin[s], int64_t(end[s] - begin[s]));
    }
    return cudaSuccess;
  }
  template <typename K, typename V, typename Begin, typename End>
  static cudaError_t SortPairs(void* scratch, size_t& bytes, const K* in, K* out, const V* values, V* sorted, int64_t, int64_t segments,
                               Begin begin, End end, int = 0, int = 8 * sizeof(K), cudaStream_t = nullptr) {
    if (harness_device::asks_size(scratch, bytes)) { return cudaSuccess; }
    for (int64_t s = 0; s < segments; ++s) {
      const int64_t at = begin[s];
      DeviceRadixSort::SortPairs(scratch, bytes, in + at, out + at, values + at, sorted + at, int64_t(end[s]) - at);
    }
    return cudaSuccess;
  }
  template <typename K, typename V, typename Begin, typename End>
  static cudaError_t SortPairsDescending(void* scratch, size_t& bytes, const K* in, K* out, const V* values, V* sorted, int64_t,
                                         int64_t segments, Begin begin, End end, int = 0, int = 8 * sizeof(K), cudaStream_t = nullptr) {
    if (harness_device::asks_size(scratch, bytes)) { return cudaSuccess; }
    for (int64_t s = 0; s < segments; ++s) {
      const int64_t at = begin[s];
      DeviceRadixSort::SortPairsDescending(scratch, bytes, in + at, out + at, values + at, sorted + at, int64_t(end[s]) - at);
    }
    return cudaSuccess;
  }
};
}
