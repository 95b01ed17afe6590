// Random numbers on the device. Not CUDA's sequences (those of XORWOW and Philox have seeds of their own), but as good ones:
// what depends on their exact values cannot be compared with a GPU, what depends on their distribution can.
#pragma once
#include <emulator/device_core.h>

struct curandStatePhilox4_32_10 {
  unsigned long long key, counter;
  float spare;
  int has_spare;
};
using curandStatePhilox4_32_10_t = curandStatePhilox4_32_10;
struct curandStateXORWOW : curandStatePhilox4_32_10 {};
using curandStateXORWOW_t = curandStateXORWOW;
using curandState = curandStateXORWOW;
using curandState_t = curandStateXORWOW;

inline void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset, curandStatePhilox4_32_10* state) {
  *state = {seed * 0x9e3779b97f4a7c15ull ^ (sequence + 0x632be59bd9b4e019ull) * 0xd6e8feb86659fd93ull, offset, 0.0f, 0};
}
inline void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset, curandStateXORWOW* state) {
  curand_init(seed, sequence, offset, static_cast<curandStatePhilox4_32_10*>(state));
}
inline unsigned curand(curandStatePhilox4_32_10* state) {
  unsigned long long z = state->key + 0x9e3779b97f4a7c15ull * ++state->counter;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return unsigned((z ^ (z >> 31)) >> 32);
}
inline float curand_uniform(curandStatePhilox4_32_10* state) { return float(curand(state)) * 2.3283064e-10f + 1.1641532e-10f; }
inline double curand_uniform_double(curandStatePhilox4_32_10* state) { return (double(curand(state)) + 0.5) * 2.3283064365386963e-10; }
inline float4 curand_uniform4(curandStatePhilox4_32_10* state) {
  const float a = curand_uniform(state), b = curand_uniform(state), c = curand_uniform(state), d = curand_uniform(state);
  return {a, b, c, d};
}
inline uint4 curand4(curandStatePhilox4_32_10* state) {
  const unsigned a = curand(state), b = curand(state), c = curand(state), d = curand(state);
  return {a, b, c, d};
}
inline float2 curand_normal2(curandStatePhilox4_32_10* state) {
  const float radius = ::sqrtf(-2.0f * ::logf(curand_uniform(state))), angle = 6.2831853f * curand_uniform(state);
  return {radius * ::sinf(angle), radius * ::cosf(angle)};
}
inline float curand_normal(curandStatePhilox4_32_10* state) {
  if (state->has_spare) {
    state->has_spare = 0;
    return state->spare;
  }
  const float2 both = curand_normal2(state);
  state->spare = both.y;
  state->has_spare = 1;
  return both.x;
}
inline float4 curand_normal4(curandStatePhilox4_32_10* state) {
  const float2 a = curand_normal2(state), b = curand_normal2(state);
  return {a.x, a.y, b.x, b.y};
}

inline double2 curand_normal2_double(curandStatePhilox4_32_10* state) {
  const double radius = ::sqrt(-2.0 * ::log(curand_uniform_double(state))), angle = 6.283185307179586 * curand_uniform_double(state);
  return {radius * ::sin(angle), radius * ::cos(angle)};
}
inline double curand_normal_double(curandStatePhilox4_32_10* state) { return curand_normal2_double(state).x; }
inline float curand_log_normal(curandStatePhilox4_32_10* state, float mean, float deviation) {
  return ::expf(mean + deviation * curand_normal(state));
}
inline double2 curand_uniform2_double(curandStatePhilox4_32_10* state) {
  const double a = curand_uniform_double(state), b = curand_uniform_double(state);
  return {a, b};
}
// By counting arrivals of an exponential clock.
inline unsigned curand_poisson(curandStatePhilox4_32_10* state, double mean) {
  unsigned count = 0;
  for (double left = mean + ::log(curand_uniform_double(state)); left > 0; left += ::log(curand_uniform_double(state))) { ++count; }
  return count;
}
inline void skipahead(unsigned long long steps, curandStatePhilox4_32_10* state) { state->counter += steps; }
struct curandStateMRG32k3a : curandStatePhilox4_32_10 {};
using curandStateMRG32k3a_t = curandStateMRG32k3a;
inline void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset, curandStateMRG32k3a* state) {
  curand_init(seed, sequence, offset, static_cast<curandStatePhilox4_32_10*>(state));
}
