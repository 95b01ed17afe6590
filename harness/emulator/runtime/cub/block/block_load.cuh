#pragma once
#include <cub/operators.h>
namespace cub {
enum BlockLoadAlgorithm { BLOCK_LOAD_DIRECT, BLOCK_LOAD_STRIPED, BLOCK_LOAD_VECTORIZE, BLOCK_LOAD_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE };
template <typename T, int X, int N, BlockLoadAlgorithm Kind = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1>
class BlockLoad {
 public:
  struct TempStorage {
    int unused;
  };
  BlockLoad() = default;
  BlockLoad(TempStorage&) {}
  template <typename From>
  void Load(From from, T (&values)[N]) { Load(from, values, X * Y * Z * N); }
  template <typename From>
  void Load(From from, T (&values)[N], int valid) {
    for (int i = 0; i < N; ++i) {
      const int at = place(i);
      if (at < valid) { values[i] = from[at]; }
    }
  }
  template <typename From, typename Other>
  void Load(From from, T (&values)[N], int valid, Other other) {
    for (int i = 0; i < N; ++i) { values[i] = place(i) < valid ? T(from[place(i)]) : T(other); }
  }

 private:
  static int place(int i) {
    const int own = int(::harness_emulator::current->linear);
    return Kind == BLOCK_LOAD_STRIPED ? own + i * X * Y * Z : own * N + i;
  }
};
}
