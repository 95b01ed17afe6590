// __nv_bfloat16 and __nv_bfloat162 with their intrinsics, as half.h.
#pragma once
#include <c10/util/BFloat16.h>

#include "half.h"

struct __nv_bfloat16_raw {
  unsigned short x;
};
struct alignas(2) __nv_bfloat16 {
 private:
  unsigned short bits_;

 public:
  __nv_bfloat16() = default;
  constexpr __nv_bfloat16(const __nv_bfloat16_raw& raw) : bits_(raw.x) {}
  template <typename T, typename = std::enable_if_t<std::is_same<T, c10::BFloat16>::value>>
  __nv_bfloat16(const T& value) : bits_(value.x) {}
#ifndef __CUDA_NO_BFLOAT16_CONVERSIONS__
  __nv_bfloat16(float value) : bits_(c10::detail::round_to_nearest_even(value)) {}
  __nv_bfloat16(double value) : __nv_bfloat16(float(value)) {}
  __nv_bfloat16(int value) : __nv_bfloat16(float(value)) {}
  __nv_bfloat16(unsigned value) : __nv_bfloat16(float(value)) {}
  __nv_bfloat16(long value) : __nv_bfloat16(float(value)) {}
  __nv_bfloat16(unsigned long value) : __nv_bfloat16(float(value)) {}
  __nv_bfloat16(long long value) : __nv_bfloat16(float(value)) {}
  __nv_bfloat16(unsigned long long value) : __nv_bfloat16(float(value)) {}
  __nv_bfloat16(short value) : __nv_bfloat16(float(value)) {}
  __nv_bfloat16(unsigned short value) : __nv_bfloat16(float(value)) {}
#include "small_float_casts.h"
#endif
  float harness_value() const { return harness_emulator::cast_bits<float>(uint32_t(bits_) << 16); }
  template <typename T>
  static __nv_bfloat16 harness_from(T value) { return harness_make(c10::detail::round_to_nearest_even(float(value))); }
  operator __nv_bfloat16_raw() const { return {bits_}; }
  operator c10::BFloat16() const { return c10::BFloat16(bits_, c10::BFloat16::from_bits()); }
  unsigned short harness_bits() const { return bits_; }
  static __nv_bfloat16 harness_make(unsigned short bits) { return __nv_bfloat16(__nv_bfloat16_raw{bits}); }
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
  __nv_bfloat162() = default;
  __nv_bfloat162(const __nv_bfloat16& a, const __nv_bfloat16& b) : x(a), y(b) {}
};
namespace harness_emulator __attribute__((visibility("hidden"))) {
HARNESS_LOADABLE(__nv_bfloat16)
HARNESS_LOADABLE(__nv_bfloat162)
}
inline c10::BFloat16 __ldg(const c10::BFloat16* address) { return *address; }  // torch's own is for GPUs
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

#ifndef __CUDA_NO_BFLOAT16_OPERATORS__
#define HARNESS_S_OPERATORS
#endif
#ifndef __CUDA_NO_BFLOAT162_OPERATORS__
#define HARNESS_S2_OPERATORS
#endif
#define HARNESS_S __nv_bfloat16
#define HARNESS_S2 __nv_bfloat162
#define HARNESS_NAME(prefix, suffix) prefix##bfloat16##suffix
#include "small_floats.h"
#undef HARNESS_S
#undef HARNESS_S2
#undef HARNESS_NAME
#undef HARNESS_S_OPERATORS
#undef HARNESS_S2_OPERATORS

inline __nv_bfloat16 __float2bfloat16_rz(float x) {
  return __nv_bfloat16::harness_make(static_cast<unsigned short>(harness_emulator::cast_bits<uint32_t>(x) >> 16));
}
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
