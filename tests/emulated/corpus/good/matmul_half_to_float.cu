// Half inputs, sums in float.
// forward: a.float() @ b.float()
// inputs: a = torch.randn(17, 30).half(), b = torch.randn(30, 21).half()
#include <torch/extension.h>
#include <cuda_fp16.h>

__global__ void matmul(const half* A, const half* B, float* C, int M, int N, int K) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= M || col >= N) return;
  float acc = 0.0f;
  for (int k = 0; k < K; ++k) acc += __half2float(A[row * K + k]) * __half2float(B[k * N + col]);
  C[row * N + col] = acc;
}

torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  int M = a.size(0), K = a.size(1), N = b.size(1);
  auto c = torch::empty({M, N}, a.options().dtype(torch::kFloat32));
  matmul<<<dim3((N + 7) / 8, (M + 7) / 8), dim3(8, 8)>>>((const half*)a.data_ptr<at::Half>(), (const half*)b.data_ptr<at::Half>(), c.data_ptr<float>(), M, N, K);
  return c;
}
