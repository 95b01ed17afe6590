// Scans over a block.
#pragma once
#include <cub/operators.h>
namespace cub {
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

template <typename T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int = 0>
class BlockScan {
 public:
  struct TempStorage {
    alignas(16) unsigned char bytes[sizeof(T) * X * Y * Z];
  };
  BlockScan(TempStorage& storage) : values_(reinterpret_cast<T*>(storage.bytes)) {}
  template <typename Join>
  void InclusiveScan(T value, T& out, Join join, T& total) {
    T before;
    scan(value, before, out, total, join);
  }
  template <typename Join>
  void InclusiveScan(T value, T& out, Join join) {
    T total;
    InclusiveScan(value, out, join, total);
  }
  template <typename Join>
  void ExclusiveScan(T value, T& out, T first, Join join, T& total) {
    T before, after;
    const bool has_before = scan(value, before, after, total, join);
    out = has_before ? join(first, before) : first;
  }
  template <typename Join>
  void ExclusiveScan(T value, T& out, T first, Join join) {
    T total;
    ExclusiveScan(value, out, first, join, total);
  }
  void InclusiveSum(T value, T& out) { InclusiveScan(value, out, cub::Sum()); }
  void InclusiveSum(T value, T& out, T& total) { InclusiveScan(value, out, cub::Sum(), total); }
  void ExclusiveSum(T value, T& out) { ExclusiveScan(value, out, T(), cub::Sum()); }
  void ExclusiveSum(T value, T& out, T& total) { ExclusiveScan(value, out, T(), cub::Sum(), total); }
  template <int N>
  void InclusiveSum(T (&values)[N], T (&out)[N]) {
    T total;
    InclusiveSum(values, out, total);
  }
  template <int N>
  void InclusiveSum(T (&values)[N], T (&out)[N], T& total) {
    T own = T(), before;
    for (int i = 0; i < N; ++i) { own = own + values[i]; }
    ExclusiveSum(own, before, total);
    for (int i = 0; i < N; ++i) { out[i] = before = before + values[i]; }
  }
  template <int N>
  void ExclusiveSum(T (&values)[N], T (&out)[N]) {
    T total;
    ExclusiveSum(values, out, total);
  }
  template <int N>
  void ExclusiveSum(T (&values)[N], T (&out)[N], T& total) {
    T own = T(), before;
    for (int i = 0; i < N; ++i) { own = own + values[i]; }
    ExclusiveSum(own, before, total);
    for (int i = 0; i < N; ++i) {
      const T value = values[i];
      out[i] = before;
      before = before + value;
    }
  }

 private:
  // Joins what threads up to this one brought; false for the first, which has nobody before it.
  template <typename Join>
  bool scan(T value, T& before, T& after, T& total, Join join) {
    const int own = int(::harness_emulator::current->linear), line = __builtin_LINE();
    values_[own] = value;
    ::harness_emulator::wait_at_barrier(0, 0, 0, 0, line);
    before = values_[0];
    for (int i = 1; i < own; ++i) { before = join(before, values_[i]); }
    after = own == 0 ? value : join(before, value);
    total = after;
    for (int i = own + 1; i < X * Y * Z; ++i) { total = join(total, values_[i]); }
    return own != 0;
  }
  T* values_;
};
}
