// Reductions over a block: each thread leaves its value in shared memory, and the first joins them in their order.
#pragma once
#include <cub/operators.h>
namespace cub {
enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };

template <typename T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int = 0>
class BlockReduce {
 public:
  struct TempStorage {
    alignas(16) unsigned char bytes[sizeof(T) * X * Y * Z];
  };
  BlockReduce(TempStorage& storage) : values_(reinterpret_cast<T*>(storage.bytes)) {}
  template <typename Join>
  T Reduce(const T& value, Join join, int valid) { return join_all(value, join, valid, __builtin_LINE()); }
  template <typename Join>
  T Reduce(const T& value, Join join) { return join_all(value, join, X * Y * Z, __builtin_LINE()); }
  template <int N, typename Join>
  T Reduce(T (&values)[N], Join join) {
    T own = values[0];
    for (int i = 1; i < N; ++i) { own = join(own, values[i]); }
    return join_all(own, join, X * Y * Z, __builtin_LINE());
  }
  T Max(const T& value) { return join_all(value, cub::Max(), X * Y * Z, __builtin_LINE()); }
  T Min(const T& value) { return join_all(value, cub::Min(), X * Y * Z, __builtin_LINE()); }
  T Sum(const T& value) { return join_all(value, cub::Sum(), X * Y * Z, __builtin_LINE()); }
  T Sum(const T& value, int valid) { return join_all(value, cub::Sum(), valid, __builtin_LINE()); }
  template <int N>
  T Sum(T (&values)[N]) { return Reduce<N>(values, cub::Sum()); }

 private:
  template <typename Join>
  T join_all(const T& value, Join join, int valid, int line) {
    const int own = int(::harness_emulator::current->linear);
    values_[own] = value;
    ::harness_emulator::wait_at_barrier(0, 0, 0, 0, line);
    T result = value;
    for (int i = 1; own == 0 && i < valid; ++i) { result = join(result, values_[i]); }
    return result;
  }
  T* values_;
};
}
