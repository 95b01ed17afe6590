// cub without its header.
// forward: x.sum().reshape(1)
// inputs: x = torch.randn(64)
// expected: build_error
#include <torch/types.h>

__global__ void total(const float* x, float* y) {
  using Reduce = cub::BlockReduce<float, 64>;
  __shared__ typename Reduce::TempStorage storage;
  float sum = Reduce(storage).Sum(x[threadIdx.x]);
  if (threadIdx.x == 0) *y = sum;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({1}, x.options());
  total<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>());
  return y;
}
