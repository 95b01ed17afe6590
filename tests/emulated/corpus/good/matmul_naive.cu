// A matrix product, one thread for each element.
// forward: a @ b
// inputs: a = torch.randn(33, 45), b = torch.randn(45, 37)
#include <torch/extension.h>

__global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < M && col < N) {
    float value = 0;
    for (int k = 0; k < K; ++k) value += A[row * K + k] * B[k * N + col];
    C[row * N + col] = value;
  }
}

torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  int M = a.size(0), K = a.size(1), N = b.size(1);
  auto c = torch::empty({M, N}, a.options());
  dim3 threads(16, 16), blocks((N + 15) / 16, (M + 15) / 16);
  matmul<<<blocks, threads>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), M, N, K);
  return c;
}
