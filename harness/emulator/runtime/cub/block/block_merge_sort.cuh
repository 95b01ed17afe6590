// Sorting by any order: each thread leaves its keys in shared memory and finds the place of each by counting.
#pragma once
#include <cub/operators.h>
namespace cub {
template <typename K, int X, int N, typename V = NullType, int Y = 1, int Z = 1>
class BlockMergeSort {
  static constexpr bool HAS_VALUES = !std::is_same<V, NullType>::value;

 public:
  static constexpr int COUNT = X * Y * Z * N;
  struct TempStorage {
    alignas(16) unsigned char keys[sizeof(K) * COUNT], values[HAS_VALUES ? sizeof(V) * COUNT : 1];
  };
  BlockMergeSort(TempStorage& storage) : keys_(reinterpret_cast<K*>(storage.keys)), values_(reinterpret_cast<V*>(storage.values)) {}
  template <typename Less>
  void Sort(K (&keys)[N], Less less) { sort(keys, nullptr, less, COUNT, __builtin_LINE()); }
  template <typename Less>
  void Sort(K (&keys)[N], V (&values)[N], Less less) { sort(keys, values, less, COUNT, __builtin_LINE()); }
  template <typename Less>
  void Sort(K (&keys)[N], Less less, int valid, K beyond) { sort_some(keys, nullptr, less, valid, beyond, __builtin_LINE()); }
  template <typename Less>
  void Sort(K (&keys)[N], V (&values)[N], Less less, int valid, K beyond) { sort_some(keys, values, less, valid, beyond, __builtin_LINE()); }
  template <typename Less>
  void StableSort(K (&keys)[N], Less less) { sort(keys, nullptr, less, COUNT, __builtin_LINE()); }
  template <typename Less>
  void StableSort(K (&keys)[N], V (&values)[N], Less less) { sort(keys, values, less, COUNT, __builtin_LINE()); }

 protected:
  template <typename Less>
  void sort_some(K* keys, V* values, Less less, int valid, K beyond, int line) {
    const int own = int(::harness_emulator::current->linear);
    for (int i = 0; i < N; ++i) { keys[i] = own * N + i < valid ? keys[i] : beyond; }
    sort(keys, values, less, valid, line);
  }
  template <typename Less>
  void sort(K* keys, V* values, Less less, int valid, int line, bool is_striped = false) {
    const int own = int(::harness_emulator::current->linear);
    for (int i = 0; i < N; ++i) { keys_[own * N + i] = keys[i]; }
    ::harness_emulator::wait_at_barrier(0, 0, 0, 0, line);
    int place[N];
    for (int i = 0; i < N; ++i) {
      place[i] = own * N + i;
      if (place[i] >= valid) { continue; }
      place[i] = 0;
      for (int j = 0; j < valid; ++j) {
        place[i] += less(keys_[j], keys[i]) || (!less(keys[i], keys_[j]) && j < own * N + i);
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
      const int from = is_striped ? own + i * (COUNT / N) : own * N + i;
      keys[i] = keys_[from];
      if constexpr (HAS_VALUES) {
        if (values) { values[i] = values_[from]; }
      }
    }
  }

 private:
  K* keys_;
  V* values_;
};
}
