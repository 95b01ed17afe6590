// Barriers that count, and that ask whether any or all.
// forward: torch.stack([(x > 0).sum(1), (x > 3).any(1).long(), (x > -9).all(1).long()], dim=1)
// inputs: x = torch.randn(12, 96)
#include <torch/extension.h>

__global__ void ask(const float* x, int64_t* y) {
  float v = x[blockIdx.x * blockDim.x + threadIdx.x];
  int count = __syncthreads_count(v > 0.0f);
  int any = __syncthreads_or(v > 3.0f);
  int all = __syncthreads_and(v > -9.0f);
  if (threadIdx.x == 0) {
    y[blockIdx.x * 3] = count;
    y[blockIdx.x * 3 + 1] = any != 0;
    y[blockIdx.x * 3 + 2] = all != 0;
  }
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0), 3}, x.options().dtype(torch::kLong));
  ask<<<x.size(0), x.size(1)>>>(x.data_ptr<float>(), y.data_ptr<int64_t>());
  return y;
}
