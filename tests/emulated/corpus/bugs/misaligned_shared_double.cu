// Doubles after one float in dynamic shared memory.
// forward: x + 1
// inputs: x = torch.randn(2, 32)
// finding: misaligned
#include <torch/extension.h>

__global__ void add_one(const float* x, float* y, int n) {
  extern __shared__ char raw[];
  float* one = reinterpret_cast<float*>(raw);
  double* wide = reinterpret_cast<double*>(one + 1);
  if (threadIdx.x == 0) *one = 1.0f;
  wide[threadIdx.x] = x[blockIdx.x * n + threadIdx.x];
  __syncthreads();
  y[blockIdx.x * n + threadIdx.x] = (float)(wide[threadIdx.x] + *one);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  add_one<<<x.size(0), 32, 4 + 32 * 8>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
