// __shfl_down, which CUDA has no more.
// forward: x.sum(dim=1)
// inputs: x = torch.randn(6, 32)
// expected: build_error
#include <torch/types.h>

__global__ void row_sum(const float* x, float* y) {
  float v = x[blockIdx.x * 32 + threadIdx.x];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down(v, o);
  if (threadIdx.x == 0) y[blockIdx.x] = v;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  row_sum<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>());
  return y;
}
