// __syncwarp of a whole warp, called by the even lanes; the odd ones wait for the block.
// forward: x + 1
// inputs: x = torch.randn(12, 32)
// finding: absent_lanes
#include <torch/extension.h>

__global__ void add_one(const float* x, float* y, int n) {
  __shared__ float s[32];
  s[threadIdx.x] = x[blockIdx.x * n + threadIdx.x];
  if (threadIdx.x % 2 == 0) {
    __syncwarp();
    s[threadIdx.x] += 0.0f;
  }
  __syncthreads();
  y[blockIdx.x * n + threadIdx.x] = s[threadIdx.x] + 1.0f;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  add_one<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
