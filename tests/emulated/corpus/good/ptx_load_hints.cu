// Inline PTX: vector loads that do not stay in the cache, and a store that streams.
// forward: x + 4
// inputs: x = torch.randn(16, 64)
#include <torch/extension.h>

__device__ __forceinline__ float4 load_streaming(const float4* p) {
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
  return v;
}

__global__ void add_four(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = load_streaming(x + i);
  asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(y + i), "f"(v.x + 4.0f), "f"(v.y + 4.0f), "f"(v.z + 4.0f), "f"(v.w + 4.0f) : "memory");
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel() / 4;
  add_four<<<(n + 63) / 64, 64>>>((const float4*)x.data_ptr<float>(), (float4*)y.data_ptr<float>(), n);
  return y;
}
