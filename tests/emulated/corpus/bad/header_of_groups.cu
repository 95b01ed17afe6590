// Cooperative groups without their header.
// forward: x + 1
// inputs: x = torch.randn(6, 6)
// expected: build_error
#include <torch/types.h>
namespace cg = cooperative_groups;

__global__ void add_one(const float* x, float* y, int n) {
  cg::thread_block block = cg::this_thread_block();
  if (block.thread_rank() < n) y[threadIdx.x] = x[threadIdx.x] + 1.0f;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  add_one<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
