#pragma once
namespace thrust {
struct harness_policy {
  template <typename Stream>
  harness_policy on(const Stream&) const { return {}; }
};
constexpr harness_policy device{}, host{}, seq{};
namespace cuda { constexpr harness_policy par{}, par_nosync{}; }
}
