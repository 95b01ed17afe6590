// Reads b by columns where rows are meant.
// forward: a @ b
// inputs: a = torch.randn(24, 24), b = torch.randn(24, 24)
// expected: wrong_value
#include <torch/extension.h>

__global__ void matmul(const float* A, const float* B, float* C, int n) {
  int row = blockIdx.x, col = threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < n; ++k) sum += A[row * n + k] * B[col * n + k];
  C[row * n + col] = sum;
}

torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty_like(a);
  matmul<<<24, 24>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), 24);
  return c;
}
