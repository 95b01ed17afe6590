// Coefficients in constant memory, copied there by the host.
// forward: 0.5 + 2.0 * x - 1.5 * x**2 + 0.25 * x**3
// inputs: x = torch.randn(45, 61)
#include <torch/extension.h>
#include <cuda_runtime.h>

__constant__ float coefficients[4];

__global__ void polynomial(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i], sum = 0.0f;
  for (int k = 3; k >= 0; --k) sum = sum * v + coefficients[k];
  y[i] = sum;
}

torch::Tensor run(torch::Tensor x) {
  const float values[4] = {0.5f, 2.0f, -1.5f, 0.25f};
  cudaMemcpyToSymbol(coefficients, values, sizeof(values));
  auto y = torch::empty_like(x);
  int n = x.numel();
  polynomial<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
