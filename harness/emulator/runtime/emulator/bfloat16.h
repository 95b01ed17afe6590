// __nv_bfloat16 and __nv_bfloat162 with their intrinsics, as half.h.
#pragma once
#include <c10/util/BFloat16.h>

#include "half.h"

namespace harness_emulator __attribute__((visibility("hidden"))) {
inline float decode(uint16_t bits, const c10::BFloat16*) { return cast_bits<float>(uint32_t(bits) << 16); }
inline uint16_t encode(float value, const c10::BFloat16*) { return c10::detail::round_to_nearest_even(value); }
inline uint16_t encode(double value, const c10::BFloat16*) { return c10::detail::round_to_nearest_even(float(value)); }
}

#ifndef __CUDA_NO_BFLOAT16_CONVERSIONS__
#define HARNESS_S_CONVERSIONS
#endif
#ifndef __CUDA_NO_BFLOAT16_OPERATORS__
#define HARNESS_S_OPERATORS
#endif
#ifndef __CUDA_NO_BFLOAT162_OPERATORS__
#define HARNESS_S2_OPERATORS
#endif
#define HARNESS_S __nv_bfloat16
#define HARNESS_S2 __nv_bfloat162
#define HARNESS_S_TORCH c10::BFloat16
#define HARNESS_NAME(prefix, suffix) prefix##bfloat16##suffix
#include "small_floats.h"
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

inline __nv_bfloat16 __float2bfloat16_rz(float x) {
  return __nv_bfloat16::harness_make(static_cast<unsigned short>(harness_emulator::cast_bits<uint32_t>(x) >> 16));
}
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
