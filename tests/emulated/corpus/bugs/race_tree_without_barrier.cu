// A tree of sums without a barrier between its steps.
// forward: x.sum(dim=1)
// inputs: x = torch.randn(12, 64)
// finding: shared_race
#include <torch/extension.h>

__global__ void row_sum(const float* x, float* y, int n) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * n + t];
  __syncthreads();
  for (int h = 32; h > 0; h /= 2)
    if (t < h) s[t] += s[t + h];
  if (t == 0) y[blockIdx.x] = s[0];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  row_sum<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
