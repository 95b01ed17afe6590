#pragma once
#include <cub/operators.h>
namespace cub {
enum BlockStoreAlgorithm { BLOCK_STORE_DIRECT, BLOCK_STORE_STRIPED, BLOCK_STORE_VECTORIZE, BLOCK_STORE_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE };
template <typename T, int X, int N, BlockStoreAlgorithm Kind = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1>
class BlockStore {
 public:
  struct TempStorage {
    int unused;
  };
  BlockStore() = default;
  BlockStore(TempStorage&) {}
  template <typename To>
  void Store(To to, T (&values)[N]) { Store(to, values, X * Y * Z * N); }
  template <typename To>
  void Store(To to, T (&values)[N], int valid) {
    for (int i = 0; i < N; ++i) {
      const int own = int(::harness_emulator::current->linear);
      const int at = Kind == BLOCK_STORE_STRIPED ? own + i * X * Y * Z : own * N + i;
      if (at < valid) { to[at] = values[i]; }
    }
  }
};
}
