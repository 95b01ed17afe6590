#pragma once
#include <cub/operators.h>
namespace cub {
template <typename T, int Lanes = 32, int = 0>
class WarpScan {
 public:
  struct TempStorage {
    int unused;
  };
  WarpScan(TempStorage&) {}
  template <typename Join>
  void InclusiveScan(T value, T& out, Join join) {
    const int lane = int(::harness_emulator::current->lane), first = lane / Lanes * Lanes;
    const unsigned mask = (Lanes == 32 ? ~0u : (1u << (Lanes % 32)) - 1u) << first;
    out = ::harness_emulator::exchange(mask, value, __builtin_LINE(), [&](auto of_lane, uint32_t) -> T {
      T result = of_lane(first);
      for (int i = first + 1; i <= lane; ++i) { result = join(result, of_lane(i)); }
      return result;
    });
  }
  void InclusiveSum(T value, T& out) { InclusiveScan(value, out, cub::Sum()); }
  void ExclusiveSum(T value, T& out) {
    T all;
    InclusiveSum(value, all);
    out = all - value;
  }
  T Broadcast(T value, unsigned lane) { return ::harness_emulator::shuffle(~0u, value, int(lane), Lanes, __builtin_LINE()); }
};
}
