// The last block sums what others wrote with neither fence nor volatile between.
// forward: x.sum().reshape(1)
// inputs: x = torch.randn(12, 64)
// finding: global_race
#include <torch/extension.h>

__device__ unsigned done;
__global__ void total(const float* x, float* y, float* partial, int n) {
  if (threadIdx.x != 0) return;
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += x[blockIdx.x * n + i];
  partial[blockIdx.x] = sum;
  if (atomicInc(&done, gridDim.x - 1) == gridDim.x - 1) {
    sum = 0.0f;
    for (int i = 0; i < gridDim.x; ++i) sum += partial[i];
    *y = sum;
  }
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({1}, x.options()), partial = torch::empty({x.size(0)}, x.options());
  total<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), partial.data_ptr<float>(), x.size(1));
  return y;
}
