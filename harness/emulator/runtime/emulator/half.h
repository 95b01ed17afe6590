// __half and __half2 with their intrinsics. Arithmetic is that of float, rounded once to nearest even, as the GPU's is.
#pragma once
#include <c10/util/Half.h>

#include "intrinsics.h"

namespace harness_emulator __attribute__((visibility("hidden"))) {
inline uint16_t half_bits(float value) { return c10::detail::fp16_ieee_from_fp32_value(value); }
inline float half_value(uint16_t bits) { return c10::detail::fp16_ieee_to_fp32_value(bits); }
inline uint16_t half_bits_of_double(double value) {
  // Rounding through float would round twice: to odd first, then to half.
  float nearest = float(value);
  if (double(nearest) != value && std::isfinite(nearest)) {
    uint32_t bits = cast_bits<uint32_t>(nearest);
    if (std::fabs(double(nearest)) > std::fabs(value)) { --bits; }
    nearest = cast_bits<float>(bits | 1u);
  }
  return half_bits(nearest);
}
}

struct __half_raw {
  unsigned short x;
};
struct __half2_raw {
  unsigned short x, y;
};

struct alignas(2) __half {
 private:
  unsigned short bits_;

 public:
  __half() = default;
  constexpr __half(const __half_raw& raw) : bits_(raw.x) {}
  template <typename T, typename = std::enable_if_t<std::is_same<T, c10::Half>::value>>
  __half(const T& value) : bits_(value.x) {}
#ifndef __CUDA_NO_HALF_CONVERSIONS__
  __half(float value) : bits_(harness_emulator::half_bits(value)) {}
  __half(double value) : bits_(harness_emulator::half_bits_of_double(value)) {}
  __half(int value) : __half(double(value)) {}
  __half(unsigned value) : __half(double(value)) {}
  __half(long value) : __half(double(value)) {}
  __half(unsigned long value) : __half(double(value)) {}
  __half(long long value) : __half(double(value)) {}
  __half(unsigned long long value) : __half(double(value)) {}
  __half(short value) : __half(float(value)) {}
  __half(unsigned short value) : __half(float(value)) {}
#include "small_float_casts.h"
  explicit operator unsigned long() const { return harness_emulator::convert<unsigned long>(harness_value()); }
#endif
  operator __half_raw() const { return {bits_}; }
  operator c10::Half() const { return c10::Half(bits_, c10::Half::from_bits()); }
  float harness_value() const { return harness_emulator::half_value(bits_); }
  static __half harness_from(float value) { return harness_make(harness_emulator::half_bits(value)); }
  static __half harness_from(double value) { return harness_make(harness_emulator::half_bits_of_double(value)); }
  template <typename T>
  static __half harness_from(T value) { return harness_from(double(value)); }
  unsigned short harness_bits() const { return bits_; }
  static __half harness_make(unsigned short bits) { return __half(__half_raw{bits}); }
};
struct alignas(4) __half2 {
  __half x, y;
  __half2() = default;
  __half2(const __half& a, const __half& b) : x(a), y(b) {}
  __half2(const __half2_raw& raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {}
};
namespace harness_emulator __attribute__((visibility("hidden"))) {
HARNESS_LOADABLE(__half)
HARNESS_LOADABLE(__half2)
}
inline c10::Half __ldg(const c10::Half* address) { return *address; }  // torch's own is for GPUs
using half = __half;
using half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;

#ifndef __CUDA_NO_HALF_OPERATORS__
#define HARNESS_S_OPERATORS
#endif
#ifndef __CUDA_NO_HALF2_OPERATORS__
#define HARNESS_S2_OPERATORS
#endif
#define HARNESS_S __half
#define HARNESS_S2 __half2
#define HARNESS_NAME(prefix, suffix) prefix##half##suffix
#include "small_floats.h"
#undef HARNESS_S
#undef HARNESS_S2
#undef HARNESS_NAME
#undef HARNESS_S_OPERATORS
#undef HARNESS_S2_OPERATORS

inline __half __float2half_rz(float x) {
  const __half nearest = __half::harness_from(x);
  const bool is_beyond = std::fabs(nearest.harness_value()) > std::fabs(x) && std::isfinite(x);
  return is_beyond ? __half::harness_make(static_cast<unsigned short>(nearest.harness_bits() - 1)) : nearest;
}
inline __half __float2half_rd(float x) {
  const __half nearest = __half::harness_from(x);
  if (!(nearest.harness_value() > x)) { return nearest; }
  const unsigned bits = nearest.harness_bits();
  return __half::harness_make(static_cast<unsigned short>(bits == 0 ? 0x8001u : bits & 0x8000u ? bits + 1 : bits - 1));
}
inline __half __float2half_ru(float x) {
  const __half down = __float2half_rd(-x);
  return __half::harness_make(static_cast<unsigned short>(down.harness_bits() ^ 0x8000u));
}
inline __half2 __half2half2(__half x) { return {x, x}; }
inline __half __int2half_rz(int x) { return __float2half_rz(float(x)); }
