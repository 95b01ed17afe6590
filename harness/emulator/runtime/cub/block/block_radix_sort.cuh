// Sorting the keys of a block, as BlockMergeSort does.
#pragma once
#include <cub/block/block_merge_sort.cuh>
#include <functional>
namespace cub {
template <typename K, int X, int N, typename V = NullType, int Bits = 4, bool Memoize = true, int Y = 1, int Z = 1>
class BlockRadixSort : BlockMergeSort<K, X, N, V, Y, Z> {
  using Base = BlockMergeSort<K, X, N, V, Y, Z>;
  using Up = std::less<K>;
  using Down = std::greater<K>;

 public:
  using typename Base::TempStorage;
  BlockRadixSort(TempStorage& storage) : Base(storage) {}
  void Sort(K (&keys)[N], int = 0, int = 8 * sizeof(K)) { Base::Sort(keys, Up()); }
  void Sort(K (&keys)[N], V (&values)[N], int = 0, int = 8 * sizeof(K)) { Base::Sort(keys, values, Up()); }
  void SortDescending(K (&keys)[N], int = 0, int = 8 * sizeof(K)) { Base::Sort(keys, Down()); }
  void SortDescending(K (&keys)[N], V (&values)[N], int = 0, int = 8 * sizeof(K)) { Base::Sort(keys, values, Down()); }
  void SortBlockedToStriped(K (&keys)[N], int = 0, int = 8 * sizeof(K)) { stripe(keys, nullptr, Up(), __builtin_LINE()); }
  void SortBlockedToStriped(K (&keys)[N], V (&values)[N], int = 0, int = 8 * sizeof(K)) { stripe(keys, values, Up(), __builtin_LINE()); }
  void SortDescendingBlockedToStriped(K (&keys)[N], int = 0, int = 8 * sizeof(K)) { stripe(keys, nullptr, Down(), __builtin_LINE()); }

 private:
  template <typename Less>
  void stripe(K* keys, V* values, Less less, int line) { Base::sort(keys, values, less, Base::COUNT, line, true); }
};
}
