// Sorting the keys of a block: each thread leaves its own in shared memory and finds the place of each by counting.
#pragma once
#include <cub/operators.h>
namespace cub {
template <typename K, int X, int N, typename V = NullType, int Bits = 4, bool Memoize = true, int Y = 1, int Z = 1>
class BlockRadixSort {
  static constexpr int COUNT = X * Y * Z * N;
  static constexpr bool HAS_VALUES = !std::is_same<V, NullType>::value;

 public:
  struct TempStorage {
    alignas(16) unsigned char keys[sizeof(K) * COUNT], values[HAS_VALUES ? sizeof(V) * COUNT : 1];
  };
  BlockRadixSort(TempStorage& storage) : keys_(reinterpret_cast<K*>(storage.keys)), values_(reinterpret_cast<V*>(storage.values)) {}
  void Sort(K (&keys)[N], int = 0, int = 8 * sizeof(K)) { sort(keys, nullptr, false, false, __builtin_LINE()); }
  void Sort(K (&keys)[N], V (&values)[N], int = 0, int = 8 * sizeof(K)) { sort(keys, values, false, false, __builtin_LINE()); }
  void SortDescending(K (&keys)[N], int = 0, int = 8 * sizeof(K)) { sort(keys, nullptr, true, false, __builtin_LINE()); }
  void SortDescending(K (&keys)[N], V (&values)[N], int = 0, int = 8 * sizeof(K)) { sort(keys, values, true, false, __builtin_LINE()); }
  void SortBlockedToStriped(K (&keys)[N], int = 0, int = 8 * sizeof(K)) { sort(keys, nullptr, false, true, __builtin_LINE()); }
  void SortBlockedToStriped(K (&keys)[N], V (&values)[N], int = 0, int = 8 * sizeof(K)) { sort(keys, values, false, true, __builtin_LINE()); }
  void SortDescendingBlockedToStriped(K (&keys)[N], int = 0, int = 8 * sizeof(K)) { sort(keys, nullptr, true, true, __builtin_LINE()); }

 private:
  void sort(K* keys, V* values, bool descending, bool striped, int line) {
    const int own = int(::harness_emulator::current->linear);
    for (int i = 0; i < N; ++i) { keys_[own * N + i] = keys[i]; }
    ::harness_emulator::wait_at_barrier(0, 0, 0, 0, line);
    int place[N];
    for (int i = 0; i < N; ++i) {
      place[i] = 0;
      for (int j = 0; j < COUNT; ++j) {
        const bool is_before = descending ? keys[i] < keys_[j] : keys_[j] < keys[i];
        place[i] += is_before || (keys_[j] == keys[i] && j < own * N + i);
      }
    }
    ::harness_emulator::wait_at_barrier(0, 0, 0, 0, line);
    for (int i = 0; i < N; ++i) {
      keys_[place[i]] = keys[i];
      if constexpr (HAS_VALUES) {
        if (values) { values_[place[i]] = values[i]; }
      }
    }
    ::harness_emulator::wait_at_barrier(0, 0, 0, 0, line);
    for (int i = 0; i < N; ++i) {
      const int from = striped ? own + i * (COUNT / N) : own * N + i;
      keys[i] = keys_[from];
      if constexpr (HAS_VALUES) {
        if (values) { values[i] = values_[from]; }
      }
    }
  }
  K* keys_;
  V* values_;
};
}
