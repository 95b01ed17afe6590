// Scans over a block.
#pragma once
#include <algorithm>
#include <type_traits>
#include <cub/operators.h>
namespace cub {
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

// `Out` and `In` are T, or arrays of T. Callbacks take the total of the block and return what comes before it.
template <typename T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int = 0>
class BlockScan {
 public:
  struct TempStorage {
    alignas(16) unsigned char bytes[sizeof(T) * (X * Y * Z + 1)];
  };
  BlockScan(TempStorage& storage) : values_(reinterpret_cast<T*>(storage.bytes)) {}
  template <typename In, typename Out, typename Join>
  void InclusiveScan(const In& in, Out& out, Join join, T& total) {
    scan<true>(in, out, join, total, [](T, T&) { return false; });
  }
  template <typename In, typename Out, typename Join>
  void InclusiveScan(const In& in, Out& out, Join join) {
    T total;
    InclusiveScan(in, out, join, total);
  }
  template <typename In, typename Out, typename Join, typename Callback>
  void InclusiveScan(const In& in, Out& out, Join join, Callback& callback) {
    T total;
    scan<true>(in, out, join, total, share_prefix(callback));
  }
  template <typename In, typename Out, typename Join>
  void ExclusiveScan(const In& in, Out& out, T first, Join join, T& total) {
    scan<false>(in, out, join, total, [first](T, T& before) {
      before = first;
      return true;
    });
  }
  template <typename In, typename Out, typename Join>
  void ExclusiveScan(const In& in, Out& out, T first, Join join) {
    T total;
    ExclusiveScan(in, out, first, join, total);
  }
  template <typename In, typename Out, typename Join>
  void ExclusiveScan(const In& in, Out& out, Join join, T& total) {
    scan<false>(in, out, join, total, [](T, T&) { return false; });
  }
  template <typename In, typename Out, typename Join>
  void ExclusiveScan(const In& in, Out& out, Join join) {
    T total;
    ExclusiveScan(in, out, join, total);
  }
  template <typename In, typename Out, typename Join, typename Callback>
  void ExclusiveScan(const In& in, Out& out, Join join, Callback& callback) {
    T total;
    scan<false>(in, out, join, total, share_prefix(callback));
  }
  template <typename In, typename Out>
  void InclusiveSum(const In& in, Out& out) { InclusiveScan(in, out, cub::Sum()); }
  template <typename In, typename Out>
  void InclusiveSum(const In& in, Out& out, T& total) { InclusiveScan(in, out, cub::Sum(), total); }
  template <typename In, typename Out, typename Callback>
  void InclusiveSum(const In& in, Out& out, Callback& callback) { InclusiveScan(in, out, cub::Sum(), callback); }
  template <typename In, typename Out>
  void ExclusiveSum(const In& in, Out& out) { ExclusiveScan(in, out, T(), cub::Sum()); }
  template <typename In, typename Out>
  void ExclusiveSum(const In& in, Out& out, T& total) { ExclusiveScan(in, out, T(), cub::Sum(), total); }
  template <typename In, typename Out, typename Callback>
  void ExclusiveSum(const In& in, Out& out, Callback& callback) { ExclusiveScan(in, out, cub::Sum(), callback); }

 private:
  template <int N>
  static void take(const T (&given)[N], T* values) { std::copy(given, given + N, values); }
  static void take(const T& given, T* values) { *values = given; }
  template <int N>
  static T* place(T (&out)[N]) { return out; }
  static T* place(T& out) { return &out; }

  // `find_prefix(total, before)`: whether something comes before the block.
  template <bool is_inclusive, typename In, typename Out, typename Join, typename Find>
  void scan(const In& in, Out& out, Join join, T& total, Find find_prefix) {
    constexpr int count = std::is_array<In>::value ? int(std::extent<In>::value) : 1;
    T values[count], *results = place(out);
    take(in, values);
    const int own = int(::harness_emulator::current->linear);
    T joined = values[0];
    for (int i = 1; i < count; ++i) { joined = join(joined, values[i]); }
    values_[own] = joined;
    ::harness_emulator::wait_at_barrier(0, 0, 0, 0, __builtin_LINE());
    T before = values_[0], prefix;
    for (int i = 1; i < own; ++i) { before = join(before, values_[i]); }
    total = own == 0 ? joined : join(before, joined);
    for (int i = own + 1; i < X * Y * Z; ++i) { total = join(total, values_[i]); }
    bool has_before = own != 0;
    if (find_prefix(total, prefix)) {
      before = has_before ? join(prefix, before) : prefix;
      has_before = true;
    }
    for (int i = 0; i < count; ++i) {
      const T after = has_before ? join(before, values[i]) : values[i];
      if (is_inclusive) {
        results[i] = after;
      } else if (has_before) {
        results[i] = before;
      }
      before = after;
      has_before = true;
    }
  }

  // The first warp calls back; what its first thread gets is before the block.
  template <typename Callback>
  auto share_prefix(Callback& callback) {
    return [this, &callback](T total, T& before) {
      const int own = int(::harness_emulator::current->linear);
      if (own < 32) {
        const T found = callback(total);
        if (own == 0) { values_[X * Y * Z] = found; }
      }
      ::harness_emulator::wait_at_barrier(0, 0, 0, 0, __builtin_LINE());
      before = values_[X * Y * Z];
      return true;
    };
  }
  T* values_;
};
}
