// Values of a block between an arrangement by threads and one by strides of the block.
#pragma once
#include <cub/operators.h>
namespace cub {
template <typename T, int X, int N, bool = false, int Y = 1, int Z = 1>
class BlockExchange {
  static constexpr int THREADS = X * Y * Z;

 public:
  struct TempStorage {
    alignas(16) unsigned char bytes[sizeof(T) * THREADS * N];
  };
  BlockExchange(TempStorage& storage) : values_(reinterpret_cast<T*>(storage.bytes)) {}
  void BlockedToStriped(T (&values)[N]) { BlockedToStriped(values, values); }
  void StripedToBlocked(T (&values)[N]) { StripedToBlocked(values, values); }
  void BlockedToStriped(const T (&in)[N], T (&out)[N]) { move(in, out, true, __builtin_LINE()); }
  void StripedToBlocked(const T (&in)[N], T (&out)[N]) { move(in, out, false, __builtin_LINE()); }

 private:
  void move(const T* in, T* out, bool to_striped, int line) {
    const int own = int(::harness_emulator::current->linear);
    for (int i = 0; i < N; ++i) { values_[to_striped ? own * N + i : own + i * THREADS] = in[i]; }
    ::harness_emulator::wait_at_barrier(0, 0, 0, 0, line);
    for (int i = 0; i < N; ++i) { out[i] = values_[to_striped ? own + i * THREADS : own * N + i]; }
  }
  T* values_;
};
}
