// Device functions chosen by pointer, and by template argument.
// forward: torch.tanh(x) + torch.relu(x) + x * x
// inputs: x = torch.randn(29, 83)
#include <torch/extension.h>

typedef float (*unary_t)(float);
__device__ float act_tanh(float v) { return tanhf(v); }
__device__ float act_relu(float v) { return v > 0 ? v : 0; }
__device__ float act_square(float v) { return v * v; }

template <unary_t F>
__device__ float apply(float v) { return F(v); }

__global__ void sum_of_three(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unary_t table[2] = {act_tanh, act_relu};
  float sum = apply<act_square>(x[i]);
  for (int k = 0; k < 2; ++k) sum += table[k](x[i]);
  y[i] = sum;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  sum_of_three<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
