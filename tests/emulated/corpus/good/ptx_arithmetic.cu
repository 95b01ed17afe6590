// Inline PTX: fma, ex2.approx, and a predicate chosen by selp.
// forward: torch.where(x > 0, torch.exp2(x * 0.5 + 0.25), torch.zeros_like(x))
// inputs: x = torch.randn(20, 33)
#include <torch/extension.h>

__global__ void compute(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i], t, e, r;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(t) : "f"(v), "f"(0.5f), "f"(0.25f));
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(t));
  asm("{ .reg .pred p; setp.gt.f32 p, %1, 0f00000000; selp.f32 %0, %2, 0f00000000, p; }" : "=f"(r) : "f"(v), "f"(e));
  y[i] = r;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  compute<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
