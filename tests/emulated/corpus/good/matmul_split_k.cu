// A matrix product whose parts of K are added by atomics.
// forward: a @ b
// inputs: a = torch.randn(16, 96), b = torch.randn(96, 24)
#include <torch/extension.h>

__global__ void part(const float* A, const float* B, float* C, int N, int K, int chunk) {
  int row = blockIdx.y, col = threadIdx.x, from = blockIdx.x * chunk;
  float acc = 0.0f;
  for (int k = from; k < min(from + chunk, K); ++k) acc += A[row * K + k] * B[k * N + col];
  atomicAdd(C + row * N + col, acc);
}

torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  int M = a.size(0), K = a.size(1), N = b.size(1);
  auto c = torch::zeros({M, N}, a.options());
  part<<<dim3(4, M), N>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), N, K, (K + 3) / 4);
  return c;
}
