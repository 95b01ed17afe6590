// Reductions and scans over the lanes of a warp, or a part of it.
#pragma once
#include <cub/operators.h>
namespace cub {
template <typename T, int Lanes = 32, int = 0>
class WarpReduce {
 public:
  struct TempStorage {
    int unused;
  };
  WarpReduce(TempStorage&) {}
  template <typename Join>
  T Reduce(const T& value, Join join, int valid = Lanes) {
    const int lane = int(::harness_emulator::current->lane), first = lane / Lanes * Lanes;
    const unsigned mask = (Lanes == 32 ? ~0u : (1u << (Lanes % 32)) - 1u) << first;
    return ::harness_emulator::exchange(mask, value, __builtin_LINE(), [&](auto of_lane, uint32_t) -> T {
      T result = of_lane(lane);
      for (int i = lane + 1; i < first + valid; ++i) { result = join(result, of_lane(i)); }
      return result;
    });
  }
  T Max(const T& value) { return Reduce(value, cub::Max()); }
  T Min(const T& value) { return Reduce(value, cub::Min()); }
  T Sum(const T& value) { return Reduce(value, cub::Sum()); }
  T Sum(const T& value, int valid) { return Reduce(value, cub::Sum(), valid); }
};
}
