#pragma once
#include <cmath>
namespace c10::cuda::compat {
#define HARNESS_COMPAT(Name)                                \
  inline float Name(float x) { return ::Name##f(x); }       \
  inline double Name(double x) { return ::Name(x); }
HARNESS_COMPAT(exp) HARNESS_COMPAT(log) HARNESS_COMPAT(sqrt) HARNESS_COMPAT(tanh) HARNESS_COMPAT(sin) HARNESS_COMPAT(cos)
HARNESS_COMPAT(erf) HARNESS_COMPAT(floor) HARNESS_COMPAT(ceil) HARNESS_COMPAT(log1p) HARNESS_COMPAT(expm1) HARNESS_COMPAT(rsqrt)
#undef HARNESS_COMPAT
inline float abs(float x) { return ::fabsf(x); }
inline double abs(double x) { return ::fabs(x); }
inline float pow(float x, float y) { return ::powf(x, y); }
inline double pow(double x, double y) { return ::pow(x, y); }
inline float max(float x, float y) { return ::fmaxf(x, y); }
inline double max(double x, double y) { return ::fmax(x, y); }
inline float min(float x, float y) { return ::fminf(x, y); }
inline double min(double x, double y) { return ::fmin(x, y); }
inline float div(float x, float y) { return x / y; }
inline double div(double x, double y) { return x / y; }
}
