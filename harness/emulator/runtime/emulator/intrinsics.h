// Arithmetic that CUDA adds to C++: intrinsics of float, double and integers, casts of bits, loads with hints, min and max.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "core.h"

using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;

// min and max for every pair of arithmetic types, of the type that both become.
#define HARNESS_MIN_MAX(T)                                  \
  inline constexpr T min(T a, T b) { return a < b ? a : b; } \
  inline constexpr T max(T a, T b) { return a > b ? a : b; }
HARNESS_MIN_MAX(int)
HARNESS_MIN_MAX(unsigned int)
HARNESS_MIN_MAX(long)
HARNESS_MIN_MAX(unsigned long)
HARNESS_MIN_MAX(long long)
HARNESS_MIN_MAX(unsigned long long)
#define HARNESS_MIN_MAX_MIXED(A, B, T)                                   \
  inline constexpr T min(A a, B b) { return min(static_cast<T>(a), static_cast<T>(b)); } \
  inline constexpr T max(A a, B b) { return max(static_cast<T>(a), static_cast<T>(b)); }
HARNESS_MIN_MAX_MIXED(int, unsigned int, unsigned int)
HARNESS_MIN_MAX_MIXED(unsigned int, int, unsigned int)
HARNESS_MIN_MAX_MIXED(long, unsigned long, unsigned long)
HARNESS_MIN_MAX_MIXED(unsigned long, long, unsigned long)
HARNESS_MIN_MAX_MIXED(long long, unsigned long long, unsigned long long)
HARNESS_MIN_MAX_MIXED(unsigned long long, long long, unsigned long long)
inline float min(float a, float b) { return ::fminf(a, b); }
inline float max(float a, float b) { return ::fmaxf(a, b); }
inline double min(double a, double b) { return ::fmin(a, b); }
inline double max(double a, double b) { return ::fmax(a, b); }
inline double min(float a, double b) { return ::fmin(double(a), b); }
inline double min(double a, float b) { return ::fmin(a, double(b)); }
inline double max(float a, double b) { return ::fmax(double(a), b); }
inline double max(double a, float b) { return ::fmax(a, double(b)); }
inline unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned umax(unsigned a, unsigned b) { return a > b ? a : b; }
inline long long llmin(long long a, long long b) { return a < b ? a : b; }
inline long long llmax(long long a, long long b) { return a > b ? a : b; }

inline float rsqrtf(float x) { return 1.0f / ::sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / ::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / ::cbrtf(x); }
inline double rcbrt(double x) { return 1.0 / ::cbrt(x); }
inline float exp10(float x) { return ::exp10f(x); }
inline float sinpif(float x) { return float(::sin(M_PI * ::fmod(double(x), 2.0))); }
inline float cospif(float x) { return float(::cos(M_PI * ::fmod(double(x), 2.0))); }
inline double sinpi(double x) { return ::sin(M_PI * ::fmod(x, 2.0)); }
inline double cospi(double x) { return ::cos(M_PI * ::fmod(x, 2.0)); }
inline void sincospif(float x, float* s, float* c) { *s = sinpif(x); *c = cospif(x); }
inline void sincospi(double x, double* s, double* c) { *s = sinpi(x); *c = cospi(x); }
inline void sincos(float x, float* s, float* c) { ::sincosf(x, s, c); }
inline float normcdff(float x) { return float(0.5 * ::erfc(-double(x) * M_SQRT1_2)); }
inline double normcdf(double x) { return 0.5 * ::erfc(-x * M_SQRT1_2); }
// Winitzki's approximation, then Newton steps on erf.
inline double harness_inverse_erf(double x) {
  if (!(::fabs(x) < 1.0)) { return ::fabs(x) == 1.0 ? ::copysign(std::numeric_limits<double>::infinity(), x) : ::nan(""); }
  const double l = ::log1p(-x * x), half = 2.0 / (M_PI * 0.147) + l / 2.0;
  double y = ::copysign(::sqrt(::sqrt(half * half - l / 0.147) - half), x);
  for (int i = 0; i < 4; ++i) { y -= (::erf(y) - x) / (2.0 / ::sqrt(M_PI) * ::exp(-y * y)); }
  return y;
}
inline float erfinvf(float x) { return float(harness_inverse_erf(double(x))); }
inline double erfinv(double x) { return harness_inverse_erf(x); }
inline float normcdfinvf(float x) { return float(M_SQRT2 * harness_inverse_erf(2.0 * double(x) - 1.0)); }
inline double normcdfinv(double x) { return M_SQRT2 * harness_inverse_erf(2.0 * x - 1.0); }
inline float erfcxf(float x) { return float(::exp(double(x) * double(x)) * ::erfc(double(x))); }
inline float norm3df(float a, float b, float c) { return ::sqrtf(a * a + b * b + c * c); }
inline float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
inline double norm3d(double a, double b, double c) { return ::sqrt(a * a + b * b + c * c); }
inline double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }
inline float norm4df(float a, float b, float c, float d) { return ::sqrtf(a * a + b * b + c * c + d * d); }
inline double norm4d(double a, double b, double c, double d) { return ::sqrt(a * a + b * b + c * c + d * d); }
inline float rnorm4df(float a, float b, float c, float d) { return 1.0f / norm4df(a, b, c, d); }
inline double rnorm4d(double a, double b, double c, double d) { return 1.0 / norm4d(a, b, c, d); }
inline double norm(int count, const double* p) {
  double sum = 0;
  for (int i = 0; i < count; ++i) { sum += p[i] * p[i]; }
  return ::sqrt(sum);
}
inline float normf(int count, const float* p) {
  double sum = 0;
  for (int i = 0; i < count; ++i) { sum += double(p[i]) * p[i]; }
  return float(::sqrt(sum));
}
inline double rnorm(int count, const double* p) { return 1.0 / norm(count, p); }
inline float rnormf(int count, const float* p) { return 1.0f / normf(count, p); }
inline double rhypot(double a, double b) { return 1.0 / ::hypot(a, b); }
inline double erfcinv(double x) { return harness_inverse_erf(1.0 - x); }
inline float erfcinvf(float x) { return float(harness_inverse_erf(1.0 - double(x))); }
inline double erfcx(double x) { return ::exp(x * x) * ::erfc(x); }
// The modified Bessel function of order n by its series, which converges for every x.
inline double harness_bessel_i(int n, double x) {
  double term = n == 0 ? 1.0 : x / 2.0, sum = 0;
  for (int k = 1; k < 500 && sum + term != sum; ++k) {
    sum += term;
    term *= x * x / 4.0 / (double(k) * (k + n));
  }
  return sum;
}
inline double cyl_bessel_i0(double x) { return harness_bessel_i(0, x); }
inline double cyl_bessel_i1(double x) { return harness_bessel_i(1, x); }
inline float cyl_bessel_i0f(float x) { return float(harness_bessel_i(0, x)); }
inline float cyl_bessel_i1f(float x) { return float(harness_bessel_i(1, x)); }
inline float rhypotf(float a, float b) { return 1.0f / ::hypotf(a, b); }
inline float fdividef(float a, float b) { return a / b; }
inline float fdivide(float a, float b) { return a / b; }
inline float saturate(float x) { return x != x ? 0.0f : x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x; }

inline float __expf(float x) { return ::expf(x); }
inline float __exp10f(float x) { return ::exp10f(x); }
inline float __logf(float x) { return ::logf(x); }
inline float __log2f(float x) { return ::log2f(x); }
inline float __log10f(float x) { return ::log10f(x); }
inline float __sinf(float x) { return ::sinf(x); }
inline float __cosf(float x) { return ::cosf(x); }
inline float __tanf(float x) { return ::tanf(x); }
inline float __tanhf(float x) { return ::tanhf(x); }
inline void __sincosf(float x, float* s, float* c) { ::sincosf(x, s, c); }
inline float __powf(float x, float y) { return x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : ::powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return saturate(x); }

// Separate roundings: what the compiler must not contract.
namespace harness_emulator __attribute__((visibility("hidden"))) {
template <typename T>
inline T opaque(T value) {
  asm("" : "+m"(value));
  return value;
}
}
#define HARNESS_ROUNDINGS(Suffix)                                                                   \
  inline float __fadd_##Suffix(float a, float b) { return harness_emulator::opaque(a + b); }        \
  inline float __fsub_##Suffix(float a, float b) { return harness_emulator::opaque(a - b); }        \
  inline float __fmul_##Suffix(float a, float b) { return harness_emulator::opaque(a * b); }        \
  inline float __fdiv_##Suffix(float a, float b) { return a / b; }                                  \
  inline float __fmaf_##Suffix(float a, float b, float c) { return ::fmaf(a, b, c); }               \
  inline float __fsqrt_##Suffix(float a) { return ::sqrtf(a); }                                     \
  inline float __frcp_##Suffix(float a) { return 1.0f / a; }                                        \
  inline double __dadd_##Suffix(double a, double b) { return harness_emulator::opaque(a + b); }     \
  inline double __dsub_##Suffix(double a, double b) { return harness_emulator::opaque(a - b); }     \
  inline double __dmul_##Suffix(double a, double b) { return harness_emulator::opaque(a * b); }     \
  inline double __ddiv_##Suffix(double a, double b) { return a / b; }                               \
  inline double __fma_##Suffix(double a, double b, double c) { return ::fma(a, b, c); }             \
  inline double __dsqrt_##Suffix(double a) { return ::sqrt(a); }                                    \
  inline double __drcp_##Suffix(double a) { return 1.0 / a; }
HARNESS_ROUNDINGS(rn)
// Towards zero, minus and plus infinity: from the nearest value, one step where it is on the wrong side of the wider result.
namespace harness_emulator __attribute__((visibility("hidden"))) {
template <typename T, typename Wide>
inline T round_down(Wide exact) {
  const T nearest = T(exact);
  return Wide(nearest) > exact ? std::nextafter(nearest, -std::numeric_limits<T>::infinity()) : nearest;
}
template <typename T, typename Wide>
inline T round_up(Wide exact) { return -round_down<T, Wide>(-exact); }
template <typename T, typename Wide>
inline T round_to_zero(Wide exact) { return exact < 0 ? round_up<T>(exact) : round_down<T>(exact); }
}
#define HARNESS_DIRECTED(Suffix, Round)                                                                                        \
  inline float __fadd_##Suffix(float a, float b) { return harness_emulator::Round<float>(double(a) + b); }                     \
  inline float __fsub_##Suffix(float a, float b) { return harness_emulator::Round<float>(double(a) - b); }                     \
  inline float __fmul_##Suffix(float a, float b) { return harness_emulator::Round<float>(double(a) * b); }                     \
  inline float __fdiv_##Suffix(float a, float b) { return harness_emulator::Round<float>(double(a) / b); }                     \
  inline float __fmaf_##Suffix(float a, float b, float c) { return harness_emulator::Round<float>(double(a) * b + c); }        \
  inline float __fsqrt_##Suffix(float a) { return harness_emulator::Round<float>(::sqrt(double(a))); }                         \
  inline float __frcp_##Suffix(float a) { return harness_emulator::Round<float>(1.0 / double(a)); }                            \
  inline double __dadd_##Suffix(double a, double b) { return harness_emulator::Round<double>((long double)a + b); }            \
  inline double __dsub_##Suffix(double a, double b) { return harness_emulator::Round<double>((long double)a - b); }            \
  inline double __dmul_##Suffix(double a, double b) { return harness_emulator::Round<double>((long double)a * b); }            \
  inline double __ddiv_##Suffix(double a, double b) { return harness_emulator::Round<double>((long double)a / b); }            \
  inline double __fma_##Suffix(double a, double b, double c) { return harness_emulator::Round<double>((long double)a * b + c); } \
  inline double __dsqrt_##Suffix(double a) { return harness_emulator::Round<double>(::sqrtl(a)); }                             \
  inline double __drcp_##Suffix(double a) { return harness_emulator::Round<double>(1.0L / a); }                                \
  inline float __int2float_##Suffix(int x) { return harness_emulator::Round<float>(double(x)); }                               \
  inline float __uint2float_##Suffix(unsigned x) { return harness_emulator::Round<float>(double(x)); }                         \
  inline float __ll2float_##Suffix(long long x) { return harness_emulator::Round<float>((long double)x); }                     \
  inline float __ull2float_##Suffix(unsigned long long x) { return harness_emulator::Round<float>((long double)x); }           \
  inline double __ll2double_##Suffix(long long x) { return harness_emulator::Round<double>((long double)x); }                  \
  inline double __ull2double_##Suffix(unsigned long long x) { return harness_emulator::Round<double>((long double)x); }        \
  inline float __double2float_##Suffix(double x) { return harness_emulator::Round<float>(x); }
HARNESS_DIRECTED(rz, round_to_zero)
HARNESS_DIRECTED(rd, round_down)
HARNESS_DIRECTED(ru, round_up)
#undef HARNESS_DIRECTED
inline float __frsqrt_rn(float a) { return 1.0f / ::sqrtf(a); }

// Conversions saturate, and NaN becomes zero, as the GPU's instructions do.
namespace harness_emulator __attribute__((visibility("hidden"))) {
template <typename To, typename From>
inline To convert(From value) {
  if (value != value) { return 0; }
  const From low = From(std::numeric_limits<To>::min());
  if (value <= low) { return std::numeric_limits<To>::min(); }
  if (value >= From(std::numeric_limits<To>::max())) { return std::numeric_limits<To>::max(); }
  return To(value);
}
}
#define HARNESS_CONVERSION(From, Name, To, ToName)                                                                      \
  inline To __##Name##2##ToName##_rn(From x) { return harness_emulator::convert<To>(std::rint(x)); }                    \
  inline To __##Name##2##ToName##_rd(From x) { return harness_emulator::convert<To>(std::floor(x)); }                   \
  inline To __##Name##2##ToName##_ru(From x) { return harness_emulator::convert<To>(std::ceil(x)); }                    \
  inline To __##Name##2##ToName##_rz(From x) { return harness_emulator::convert<To>(std::trunc(x)); }
#define HARNESS_CONVERSIONS(From)                              \
  HARNESS_CONVERSION(From, From, int, int)                     \
  HARNESS_CONVERSION(From, From, unsigned, uint)               \
  HARNESS_CONVERSION(From, From, long long, ll)                \
  HARNESS_CONVERSION(From, From, unsigned long long, ull)
HARNESS_CONVERSIONS(float)
HARNESS_CONVERSIONS(double)
inline float __int2float_rn(int x) { return float(x); }
inline float __uint2float_rn(unsigned x) { return float(x); }
inline float __ll2float_rn(long long x) { return float(x); }
inline float __ull2float_rn(unsigned long long x) { return float(x); }
inline double __int2double_rn(int x) { return double(x); }
inline double __uint2double_rn(unsigned x) { return double(x); }
inline double __ll2double_rn(long long x) { return double(x); }
inline double __ull2double_rn(unsigned long long x) { return double(x); }
inline float __double2float_rn(double x) { return float(x); }

namespace harness_emulator __attribute__((visibility("hidden"))) {
template <typename To, typename From>
inline To cast_bits(From value) {
  static_assert(sizeof(To) == sizeof(From), "bits are cast between types of one size");
  To result;
  std::memcpy(static_cast<void*>(&result), &value, sizeof(To));
  return result;
}
}
inline int __float_as_int(float x) { return harness_emulator::cast_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return harness_emulator::cast_bits<unsigned>(x); }
inline float __int_as_float(int x) { return harness_emulator::cast_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return harness_emulator::cast_bits<float>(x); }
inline long long __double_as_longlong(double x) { return harness_emulator::cast_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return harness_emulator::cast_bits<double>(x); }
inline int __double2hiint(double x) { return int(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return int(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double((static_cast<long long>(high) << 32) | static_cast<unsigned>(low));
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int i = 0; i < 32; ++i) { result |= (x >> i & 1u) << (31 - i); }
  return result;
}
inline unsigned long long __brevll(unsigned long long x) {
  return (static_cast<unsigned long long>(__brev(unsigned(x))) << 32) | __brev(unsigned(x >> 32));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long both = (static_cast<unsigned long long>(y) << 32) | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned choice = selector >> (4 * i) & 0xfu;
    unsigned byte = unsigned(both >> (8 * (choice & 7u))) & 0xffu;
    if (choice & 8u) { byte = byte & 0x80u ? 0xffu : 0u; }
    result |= byte << (8 * i);
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = (static_cast<unsigned long long>(high) << 32) | low;
  return unsigned(both << (shift & 31u) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = (static_cast<unsigned long long>(high) << 32) | low;
  return unsigned(both >> (shift & 31u));
}
inline int __mulhi(int a, int b) { return int((static_cast<long long>(a) * b) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((static_cast<unsigned long long>(a) * b) >> 32); }
inline long long __mul64hi(long long a, long long b) { return static_cast<long long>((static_cast<__int128>(a) * b) >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
inline int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline unsigned __sad(int a, int b, unsigned c) { return unsigned(a > b ? a - b : b - a) + c; }
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
inline unsigned __uhadd(unsigned a, unsigned b) { return unsigned((static_cast<unsigned long long>(a) + b) >> 1); }
inline unsigned __urhadd(unsigned a, unsigned b) { return unsigned((static_cast<unsigned long long>(a) + b + 1) >> 1); }
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
// The place of the offset-th set bit from `base` on, upwards or downwards; all ones where there is none.
inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  int left = offset < 0 ? -offset : offset;
  if (offset == 0) { return mask >> base & 1u ? base : ~0u; }
  for (int at = int(base); at >= 0 && at < 32; at += offset < 0 ? -1 : 1) {
    if ((mask >> at & 1u) && --left == 0) { return unsigned(at); }
  }
  return ~0u;
}
// Four bytes or two halves at once.
namespace harness_emulator __attribute__((visibility("hidden"))) {
template <typename Part, typename F>
inline unsigned each_part(unsigned a, unsigned b, F&& f) {
  unsigned result = 0;
  constexpr int BITS = int(8 * sizeof(Part));
  for (int at = 0; at < 32; at += BITS) {
    const auto part = static_cast<std::make_unsigned_t<Part>>(f(int(Part(a >> at)), int(Part(b >> at))));
    result |= unsigned(part) << at;
  }
  return result;
}
}
#define HARNESS_PARTS(Name, Expression)                                                                                       \
  inline unsigned Name##2(unsigned a, unsigned b) { return harness_emulator::each_part<short>(a, b, [](int x, int y) { return Expression; }); } \
  inline unsigned Name##4(unsigned a, unsigned b) { return harness_emulator::each_part<signed char>(a, b, [](int x, int y) { return Expression; }); }
#define HARNESS_UNSIGNED_PARTS(Name, Expression)                                                                              \
  inline unsigned Name##2(unsigned a, unsigned b) { return harness_emulator::each_part<unsigned short>(a, b, [](int x, int y) { return Expression; }); } \
  inline unsigned Name##4(unsigned a, unsigned b) { return harness_emulator::each_part<unsigned char>(a, b, [](int x, int y) { return Expression; }); }
HARNESS_PARTS(__vadd, x + y)
HARNESS_PARTS(__vsub, x - y)
HARNESS_PARTS(__vmaxs, x > y ? x : y)
HARNESS_PARTS(__vmins, x < y ? x : y)
HARNESS_UNSIGNED_PARTS(__vmaxu, x > y ? x : y)
HARNESS_UNSIGNED_PARTS(__vminu, x < y ? x : y)
HARNESS_UNSIGNED_PARTS(__vabsdiffu, x > y ? x - y : y - x)
HARNESS_UNSIGNED_PARTS(__vavgu, (x + y + 1) / 2)
HARNESS_UNSIGNED_PARTS(__vcmpeq, x == y ? -1 : 0)
#undef HARNESS_PARTS
#undef HARNESS_UNSIGNED_PARTS
inline int __dp2a_lo(int a, int b, int c) {
  return c + int(short(a)) * int(static_cast<signed char>(b)) + int(short(a >> 16)) * int(static_cast<signed char>(b >> 8));
}
inline int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }
inline int __hadd(int a, int b) { return int((static_cast<long long>(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return int((static_cast<long long>(a) + b + 1) >> 1); }
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) { c += int(static_cast<signed char>(a >> (8 * i))) * int(static_cast<signed char>(b >> (8 * i))); }
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) { c += (a >> (8 * i) & 0xffu) * (b >> (8 * i) & 0xffu); }
  return c;
}
// Of a vector type; `__builtin_bit_cast` needs GCC 11.
template <typename Word, typename Vector> inline Word harness_word(Vector value) {
  static_assert(sizeof(Word) == sizeof(Vector));
  Word word;
  __builtin_memcpy(&word, &value, sizeof word);
  return word;
}
inline int __dp4a(char4 a, char4 b, int c) { return __dp4a(harness_word<int>(a), harness_word<int>(b), c); }
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return __dp4a(harness_word<unsigned>(a), harness_word<unsigned>(b), c);
}
inline int __dp2a_lo(short2 a, char4 b, int c) { return __dp2a_lo(harness_word<int>(a), harness_word<int>(b), c); }
inline int __dp2a_hi(short2 a, char4 b, int c) { return __dp2a_hi(harness_word<int>(a), harness_word<int>(b), c); }

// Loads and stores with a hint for the caches, which means nothing here. Of the types that the GPU has such loads for.
namespace harness_emulator __attribute__((visibility("hidden"))) {
template <typename T>
struct IsLoadable : std::integral_constant<bool, std::is_arithmetic<T>::value && !std::is_same<T, bool>::value> {};
#define HARNESS_LOADABLE(T) \
  template <>               \
  struct IsLoadable<T> : std::true_type {};
#define HARNESS_LOADABLE_VECTORS(Name) HARNESS_LOADABLE(Name##2) HARNESS_LOADABLE(Name##4)
HARNESS_LOADABLE_VECTORS(char)
HARNESS_LOADABLE_VECTORS(uchar)
HARNESS_LOADABLE_VECTORS(short)
HARNESS_LOADABLE_VECTORS(ushort)
HARNESS_LOADABLE_VECTORS(int)
HARNESS_LOADABLE_VECTORS(uint)
HARNESS_LOADABLE_VECTORS(long)
HARNESS_LOADABLE_VECTORS(ulong)
HARNESS_LOADABLE_VECTORS(longlong)
HARNESS_LOADABLE_VECTORS(ulonglong)
HARNESS_LOADABLE_VECTORS(float)
HARNESS_LOADABLE_VECTORS(double)
#undef HARNESS_LOADABLE_VECTORS
template <typename T>
using Loadable = std::enable_if_t<IsLoadable<T>::value>;
}
#define HARNESS_LOAD(Name)                                         \
  template <typename T, typename = harness_emulator::Loadable<T>>  \
  inline T Name(const T* address) { return *address; }
HARNESS_LOAD(__ldg)
HARNESS_LOAD(__ldca)
HARNESS_LOAD(__ldcg)
HARNESS_LOAD(__ldcs)
HARNESS_LOAD(__ldcv)
HARNESS_LOAD(__ldlu)
#define HARNESS_STORE(Name)                                        \
  template <typename T, typename = harness_emulator::Loadable<T>>  \
  inline void Name(T* address, std::common_type_t<T> value) { *address = value; }
HARNESS_STORE(__stwb)
HARNESS_STORE(__stcg)
HARNESS_STORE(__stcs)
HARNESS_STORE(__stwt)

inline size_t __cvta_generic_to_shared(const void* pointer) {
  return size_t(static_cast<const char*>(pointer) - harness_emulator::current->block->static_begin);
}
inline size_t __cvta_generic_to_global(const void* pointer) { return reinterpret_cast<size_t>(pointer); }
inline void* __cvta_shared_to_generic(size_t address) { return harness_emulator::current->block->static_begin + address; }

// What nvcc assumes, nothing is made of here.
#define __builtin_assume(condition) static_cast<void>(0)
#define __assume(condition) static_cast<void>(0)
inline unsigned __isShared(const void* pointer) {
  const harness_emulator::Block& block = *harness_emulator::current->block;
  const char* at = static_cast<const char*>(pointer);
  const bool is_dynamic = at >= block.dynamic_begin && at < block.dynamic_begin + block.dynamic_bytes;
  return is_dynamic || (at >= block.static_begin && at < block.static_begin + block.static_used);
}

[[noreturn]] inline void harness_assert_fails(const char* text, const char*, int line) {
  char message[300];
  std::snprintf(message, sizeof message, "assertion `%s` failed", text);
  harness_emulator::fail_thread(710, "assertion", message, line);
}
