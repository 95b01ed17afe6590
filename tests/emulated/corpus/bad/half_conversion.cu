// A half becomes a float by itself, which torch's flags forbid.
// forward: x.float()
// inputs: x = torch.randn(6, 6).half()
// expected: build_error
#include <torch/types.h>
#include <cuda_fp16.h>

__global__ void widen(const __half* x, float* y, int n) {
  if (threadIdx.x < n) {
    float v = x[threadIdx.x];
    y[threadIdx.x] = v;
  }
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty(x.sizes(), x.options().dtype(torch::kFloat));
  widen<<<1, 64>>>((const __half*)x.data_ptr<at::Half>(), y.data_ptr<float>(), x.numel());
  return y;
}
