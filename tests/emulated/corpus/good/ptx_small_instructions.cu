// Small PTX instructions that fast kernels use: approximations, conversions, bit fields, wide products.
// forward: (torch.exp2(x) + torch.tanh(x) + x.half().float() + 3 * torch.arange(x.numel(), device=x.device).reshape(x.shape) % 8)
// inputs: x = torch.rand(8, 16)
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <cstdint>
__device__ __forceinline__ float ex2(float x) { float y; asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ __forceinline__ float fast_tanh(float x) { float y; asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ __forceinline__ float through_half(float x) {
  unsigned short h; float y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(h));
  return y;
}
__device__ __forceinline__ uint32_t bits(uint32_t v) {
  uint32_t low, three;
  asm("bfe.u32 %0, %1, 0, 3;" : "=r"(low) : "r"(v * 3u));
  uint64_t wide;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(wide) : "r"(low), "r"(1u));
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(three) : "r"((uint32_t)wide), "r"(0xffffffffu), "r"(0u));
  asm("prmt.b32 %0, %1, %2, 0x3210;" : "=r"(three) : "r"(three), "r"(0u));
  return three;
}
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = ex2(x[i]) + fast_tanh(x[i]) + through_half(x[i]) + bits(i);
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  k<<<1, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
