// How often each value comes in a block: counted by atomics in the memory that the caller gives.
#pragma once
#include <cub/operators.h>
namespace cub {
enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };

template <typename T, int X, int N, int Bins, BlockHistogramAlgorithm = BLOCK_HISTO_SORT, int Y = 1, int Z = 1>
class BlockHistogram {
 public:
  struct TempStorage {
    unsigned char unused;
  };
  BlockHistogram(TempStorage&) {}
  template <typename Count>
  void InitHistogram(Count* counts) {
    for (int i = int(::harness_emulator::current->linear); i < Bins; i += X * Y * Z) { counts[i] = 0; }
  }
  template <typename Count>
  void Composite(T (&values)[N], Count* counts) {
    for (int i = 0; i < N; ++i) { atomicAdd(&counts[values[i]], Count(1)); }
  }
  template <typename Count>
  void Histogram(T (&values)[N], Count* counts) {
    InitHistogram(counts);
    ::harness_emulator::wait_at_barrier(0, 0, 0, 0, __builtin_LINE());
    Composite(values, counts);
  }
};
}
