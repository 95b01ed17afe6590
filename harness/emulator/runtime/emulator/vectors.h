// CUDA's vector types, their make_ functions, and dim3.
#pragma once
#include <cstdint>

#define HARNESS_VECTOR(Scalar, Name, Align1, Align2, Align4)                                                   \
  struct Name##1 { Scalar x; };                                                                                \
  struct alignas(Align2) Name##2 { Scalar x, y; };                                                             \
  struct Name##3 { Scalar x, y, z; };                                                                          \
  struct alignas(Align4) Name##4 { Scalar x, y, z, w; };                                                       \
  inline constexpr Name##1 make_##Name##1(Scalar x) { return {x}; }                                            \
  inline constexpr Name##2 make_##Name##2(Scalar x, Scalar y) { return {x, y}; }                               \
  inline constexpr Name##3 make_##Name##3(Scalar x, Scalar y, Scalar z) { return {x, y, z}; }                  \
  inline constexpr Name##4 make_##Name##4(Scalar x, Scalar y, Scalar z, Scalar w) { return {x, y, z, w}; }

HARNESS_VECTOR(signed char, char, 1, 2, 4)
HARNESS_VECTOR(unsigned char, uchar, 1, 2, 4)
HARNESS_VECTOR(short, short, 2, 4, 8)
HARNESS_VECTOR(unsigned short, ushort, 2, 4, 8)
HARNESS_VECTOR(int, int, 4, 8, 16)
HARNESS_VECTOR(unsigned int, uint, 4, 8, 16)
HARNESS_VECTOR(long, long, 8, 16, 16)
HARNESS_VECTOR(unsigned long, ulong, 8, 16, 16)
HARNESS_VECTOR(long long, longlong, 8, 16, 16)
HARNESS_VECTOR(unsigned long long, ulonglong, 8, 16, 16)
HARNESS_VECTOR(float, float, 4, 8, 16)
HARNESS_VECTOR(double, double, 8, 16, 16)
#undef HARNESS_VECTOR

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
