// One mistake per kernel; what is noticed is printed after each.
#include <cuda_runtime.h>
#include <cstdio>
#include <stdexcept>

__global__ void shared_race(const float* x, float* y) {
  __shared__ float s[256];
  s[threadIdx.x] = 0;
  __syncthreads();
  s[threadIdx.x] = x[threadIdx.x] + 1;
  y[threadIdx.x] = s[255 - threadIdx.x];
}
__global__ void missing_second_barrier(const float* x, float* y) {
  __shared__ float s[64];
  for (int t = 0; t < 4; ++t) {
    s[threadIdx.x] = x[t * 64 + threadIdx.x] + t;
    __syncthreads();
    y[threadIdx.x] += s[63 - threadIdx.x];
  }
}
__global__ void global_race(float* y) { y[0] = threadIdx.x; }
__global__ void race_of_blocks(float* y) {
  if (threadIdx.x == 0) y[0] += blockIdx.x + 1;
}
__global__ void beyond_the_end(const float* x, float* y) {
  int i = blockIdx.x * 256 + threadIdx.x;
  y[i] = x[i];
}
__global__ void beyond_shared(float* y) {
  __shared__ float s[32];
  s[threadIdx.x] = 1;
  s[threadIdx.x + 1] = 1;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
__global__ void beyond_dynamic(float* y) {
  extern __shared__ float s[];
  s[threadIdx.x + 8] = 1;
  y[threadIdx.x] = s[threadIdx.x + 8];
}
__global__ void uninitialised(float* y) {
  __shared__ float s[64];
  if (threadIdx.x < 32) s[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
__global__ void misaligned(float* y) { reinterpret_cast<float4*>(y + 1)[threadIdx.x] = make_float4(1, 2, 3, 4); }
__global__ void divergent(float* y) {
  if (threadIdx.x < 16) __syncthreads();
  else y[0] = 1,
    __syncthreads();
  y[threadIdx.x] = 1;
}
__global__ void absent_lanes(float* y) {
  float v = threadIdx.x;
  if (threadIdx.x < 8) v += __shfl_down_sync(0xffffffff, v, 4);
  y[threadIdx.x] = v;
}
__global__ void warp_synchronous(float* y) {
  __shared__ volatile float s[64];
  s[threadIdx.x] = threadIdx.x;
  s[threadIdx.x + 32] = 0;
  __syncwarp();
  s[threadIdx.x] += s[threadIdx.x + 16];
  s[threadIdx.x] += s[threadIdx.x + 8];
  y[threadIdx.x] = s[threadIdx.x];
}
__global__ void wild(float* x) { x[100000000 + threadIdx.x] = 1; }
__global__ void endless(int* flag) {
  while (*(volatile int*)flag == 77) {}
}
__global__ void deadlock(float* y) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");
  y[threadIdx.x] = 1;
}
__device__ int descend(int n, volatile int* p) {
  volatile char buffer[1000];
  buffer[n % 1000] = n;
  return n == 0 ? buffer[0] : descend(n - 1, p) + buffer[n % 1000] + *p;
}
__global__ void recursive(int* x) { x[0] = descend(1 << 30, x); }
__global__ void too_much(float* x) {
  extern __shared__ float s[];
  s[threadIdx.x] = 1;
  x[threadIdx.x] = s[threadIdx.x];
}
__global__ void too_much_declared(float* x) {
  __shared__ float s[10000], t[10000]; t[0] = 1;
  s[threadIdx.x] = 1;
  x[threadIdx.x] = s[threadIdx.x];
}
__global__ void __launch_bounds__(64) bounded(float* x) { x[threadIdx.x] = 1; }
__global__ void fails(int* x) { assert(x == nullptr); }
__global__ void first_eighth_only(float* y) {
  float v = threadIdx.x;
  if (threadIdx.x < 8)
    for (int o = 4; o > 0; o /= 2) v += __shfl_down_sync(0xff, v, o);
  if (threadIdx.x == 0) y[0] = v;
}

extern "C" const char* harness_emulator_take_findings();
extern "C" void harness_emulator_configure(const char*);
#define TRY(name, ...)                                                               \
  {                                                                                  \
    const char* outcome = "returned";                                                \
    try { __VA_ARGS__; } catch (const std::exception& e) { outcome = "raised"; }     \
    int error = cudaGetLastError();                                                  \
    printf("{\"name\":\"%s\",\"outcome\":\"%s\",\"error\":%d,\"findings\":%s}\n", name, outcome, error, harness_emulator_take_findings()); \
  }
int main(int, char** argv) {
  harness_emulator_configure(argv[1]);
  float *x, *y;
  int* d;
  cudaMalloc(&x, 4000);
  cudaMalloc(&y, 4000);
  cudaMalloc(&d, 4000);
  for (int i = 0; i < 1000; ++i) x[i] = i + 1, y[i] = 0, d[i] = 77;
  TRY("shared_race", shared_race<<<1, 256>>>(x, y))
  TRY("missing_second_barrier", missing_second_barrier<<<1, 64>>>(x, y))
  TRY("global_race", global_race<<<1, 64>>>(y))
  TRY("race_of_blocks", race_of_blocks<<<4, 64>>>(y))
  TRY("beyond_the_end", beyond_the_end<<<4, 256>>>(x, y))
  TRY("beyond_shared", beyond_shared<<<1, 32>>>(y))
  TRY("beyond_dynamic", beyond_dynamic<<<1, 32, 32 * 4>>>(y))
  TRY("uninitialised", uninitialised<<<1, 64>>>(y))
  TRY("misaligned", misaligned<<<1, 32>>>(y))
  TRY("divergent", divergent<<<1, 64>>>(y))
  TRY("absent_lanes", absent_lanes<<<1, 32>>>(y))
  TRY("first_eighth_only", first_eighth_only<<<1, 32>>>(y))
  TRY("warp_synchronous", warp_synchronous<<<1, 32>>>(y))
  TRY("wild", wild<<<2, 64>>>(x))
  TRY("endless", endless<<<4, 32>>>(d))
  TRY("deadlock", deadlock<<<1, 64>>>(y))
  TRY("recursive", recursive<<<1, 32>>>(d))
  TRY("too_much_dynamic", too_much<<<1, 32, 100000>>>(x))
  cudaFuncSetAttribute(too_much, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);
  TRY("allowed_dynamic", too_much<<<1, 32, 100000>>>(x))
  TRY("too_much_declared", too_much_declared<<<1, 32>>>(x))
  TRY("too_many_threads", too_much<<<1, 2048>>>(x))
  TRY("beyond_launch_bounds", bounded<<<1, 128>>>(x))
  TRY("empty_grid", too_much<<<0, 32>>>(x))
  TRY("huge_grid", bounded<<<dim3(2147483647, 65535), 64>>>(x))
  TRY("assertion", fails<<<1, 4>>>(d))
}
