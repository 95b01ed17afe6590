// A kernel that throws.
// forward: x.sqrt()
// inputs: x = torch.rand(40)
// expected: build_error
#include <torch/types.h>
#include <stdexcept>

__global__ void root(const float* x, float* y, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  if (x[i] < 0.0f) throw std::runtime_error("negative");
  y[i] = sqrtf(x[i]);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  root<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
