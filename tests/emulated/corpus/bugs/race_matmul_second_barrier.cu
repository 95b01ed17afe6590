// A tiled product whose tiles are overwritten while others still read them.
// forward: a @ b
// inputs: a = torch.randn(32, 64), b = torch.randn(64, 32)
// finding: shared_race
#include <torch/extension.h>

__global__ void matmul(const float* A, const float* B, float* C, int N, int K) {
  __shared__ float As[16][16], Bs[16][16];
  int ty = threadIdx.y, tx = threadIdx.x, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
  float sum = 0.0f;
  for (int k = 0; k < K; k += 16) {
    As[ty][tx] = A[row * K + k + tx];
    Bs[ty][tx] = B[(k + ty) * N + col];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += As[ty][i] * Bs[i][tx];
  }
  C[row * N + col] = sum;
}

torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty({a.size(0), b.size(1)}, a.options());
  matmul<<<dim3(2, 2), dim3(16, 16)>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), b.size(1), a.size(1));
  return c;
}
