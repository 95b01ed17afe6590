#pragma once
#include <algorithm>
#include <cub/device/device_reduce.cuh>
#include <utility>
#include <vector>
namespace cub {
struct DeviceRadixSort {
  template <typename K, typename N>
  static cudaError_t SortKeys(void* scratch, size_t& bytes, const K* in, K* out, N count, int = 0, int = 8 * sizeof(K), cudaStream_t = nullptr) {
    return sort<std::less<K>>(scratch, bytes, in, out, count);
  }
  template <typename K, typename N>
  static cudaError_t SortKeysDescending(void* scratch, size_t& bytes, const K* in, K* out, N count, int = 0, int = 8 * sizeof(K), cudaStream_t = nullptr) {
    return sort<std::greater<K>>(scratch, bytes, in, out, count);
  }
  template <typename K, typename V, typename N>
  static cudaError_t SortPairs(void* scratch, size_t& bytes, const K* in, K* out, const V* values, V* sorted, N count,
                                int = 0, int = 8 * sizeof(K), cudaStream_t = nullptr) {
    return sort_pairs<std::less<K>>(scratch, bytes, in, out, values, sorted, count);
  }
  template <typename K, typename V, typename N>
  static cudaError_t SortPairsDescending(void* scratch, size_t& bytes, const K* in, K* out, const V* values, V* sorted, N count,
                                int = 0, int = 8 * sizeof(K), cudaStream_t = nullptr) {
    return sort_pairs<std::greater<K>>(scratch, bytes, in, out, values, sorted, count);
  }

 private:
  template <typename Less, typename K, typename N>
  static cudaError_t sort(void* scratch, size_t& bytes, const K* in, K* out, N count) {
    if (harness_device::asks_size(scratch, bytes)) { return cudaSuccess; }
    std::copy(in, in + count, out);
    std::stable_sort(out, out + count, Less());
    return cudaSuccess;
  }
  template <typename Less, typename K, typename V, typename N>
  static cudaError_t sort_pairs(void* scratch, size_t& bytes, const K* in, K* out, const V* values, V* sorted, N count) {
    if (harness_device::asks_size(scratch, bytes)) { return cudaSuccess; }
    std::vector<std::pair<K, V>> all;
    for (N i = 0; i < count; ++i) { all.emplace_back(in[i], values[i]); }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return Less()(a.first, b.first); });
    for (N i = 0; i < count; ++i) {
      out[i] = all[size_t(i)].first;
      sorted[i] = all[size_t(i)].second;
    }
    return cudaSuccess;
  }
};
}
