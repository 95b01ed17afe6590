// The sum of everything: blocks add up theirs, then one atomic each.
// forward: x.sum().reshape(1)
// inputs: x = torch.randn(60, 90)
#include <torch/extension.h>

__global__ void total(const float* x, float* y, int n) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0.0f;
  __syncthreads();
  float own = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += x[i];
  atomicAdd(&sum, own);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(y, sum);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::zeros({1}, x.options());
  total<<<8, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
