#pragma once
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
inline void gpuAtomicAddNoReturn(float* at, float value) { atomicAdd(at, value); }
inline void gpuAtomicAddNoReturn(double* at, double value) { atomicAdd(at, value); }
inline void gpuAtomicAddNoReturn(c10::Half* at, c10::Half value) { atomicAdd(reinterpret_cast<__half*>(at), __half(value)); }
inline void gpuAtomicAddNoReturn(c10::BFloat16* at, c10::BFloat16 value) {
  atomicAdd(reinterpret_cast<__nv_bfloat16*>(at), __nv_bfloat16(value));
}
inline float gpuAtomicAdd(float* at, float value) { return atomicAdd(at, value); }
inline double gpuAtomicAdd(double* at, double value) { return atomicAdd(at, value); }
inline int gpuAtomicAdd(int* at, int value) { return atomicAdd(at, value); }
inline int64_t gpuAtomicAdd(int64_t* at, int64_t value) {
  return int64_t(atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value)));
}
inline c10::Half gpuAtomicAdd(c10::Half* at, c10::Half value) { return atomicAdd(reinterpret_cast<__half*>(at), __half(value)); }
inline c10::BFloat16 gpuAtomicAdd(c10::BFloat16* at, c10::BFloat16 value) {
  return atomicAdd(reinterpret_cast<__nv_bfloat16*>(at), __nv_bfloat16(value));
}
