// half2 at an odd element.
// forward: x[1:65].float()
// inputs: x = torch.randn(66).half()
// finding: misaligned
#include <torch/extension.h>
#include <cuda_fp16.h>
__global__ void widen(const __half* x, float* y) {
  __half2 v = *reinterpret_cast<const __half2*>(x + 1 + 2 * threadIdx.x);
  y[2 * threadIdx.x] = __low2float(v);
  y[2 * threadIdx.x + 1] = __high2float(v);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({64}, x.options().dtype(torch::kFloat));
  widen<<<1, 32>>>(reinterpret_cast<const __half*>(x.data_ptr<at::Half>()), y.data_ptr<float>());
  return y;
}
