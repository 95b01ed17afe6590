#pragma once
#include <cuda.h>
template <typename T> T WARP_SHFL(T value, int lane, int width = warpSize, unsigned mask = 0xffffffff) { return __shfl_sync(mask, value, lane, width); }
template <typename T> T WARP_SHFL_UP(T value, unsigned delta, int width = warpSize, unsigned mask = 0xffffffff) { return __shfl_up_sync(mask, value, delta, width); }
template <typename T> T WARP_SHFL_DOWN(T value, unsigned delta, int width = warpSize, unsigned mask = 0xffffffff) { return __shfl_down_sync(mask, value, delta, width); }
template <typename T> T WARP_SHFL_XOR(T value, int bits, int width = warpSize, unsigned mask = 0xffffffff) { return __shfl_xor_sync(mask, value, bits, width); }
inline unsigned WARP_BALLOT(int predicate, unsigned mask = 0xffffffff) { return __ballot_sync(mask, predicate); }
inline unsigned ACTIVE_MASK() { return __activemask(); }
inline void WARP_SYNC(unsigned mask = 0xffffffff) { __syncwarp(mask); }
template <typename T> T doLdg(const T* address) { return *address; }
