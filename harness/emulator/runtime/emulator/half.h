// __half and __half2 with their intrinsics. Arithmetic is that of float, rounded once to nearest even, as the GPU's is.
#pragma once
#include <c10/util/Half.h>

#include "intrinsics.h"

namespace harness_emulator __attribute__((visibility("hidden"))) {
inline float half_value(uint16_t bits) { return c10::detail::fp16_ieee_to_fp32_value(bits); }
inline float decode(uint16_t bits, const c10::Half*) { return half_value(bits); }
inline uint16_t encode(float value, const c10::Half*) { return c10::detail::fp16_ieee_from_fp32_value(value); }
inline uint16_t encode(double value, const c10::Half* type) {
  // Rounding through float would round twice: to odd first, then to half.
  float nearest = float(value);
  if (double(nearest) != value && std::isfinite(nearest)) {
    uint32_t bits = cast_bits<uint32_t>(nearest);
    if (std::fabs(double(nearest)) > std::fabs(value)) { --bits; }
    nearest = cast_bits<float>(bits | 1u);
  }
  return encode(nearest, type);
}
}

#ifndef __CUDA_NO_HALF_CONVERSIONS__
#define HARNESS_S_CONVERSIONS
#endif
#ifndef __CUDA_NO_HALF_OPERATORS__
#define HARNESS_S_OPERATORS
#endif
#ifndef __CUDA_NO_HALF2_OPERATORS__
#define HARNESS_S2_OPERATORS
#endif
#define HARNESS_S __half
#define HARNESS_S2 __half2
#define HARNESS_S_TORCH c10::Half
#define HARNESS_NAME(prefix, suffix) prefix##half##suffix
#include "small_floats.h"
using half = __half;
using half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;

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
