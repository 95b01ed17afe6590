// Tensor cores through wmma: half inputs, float accumulators.
// forward: a.float() @ b.float()
// inputs: a = torch.randn(32, 48).half(), b = torch.randn(48, 64).half()
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

__global__ void matmul(const half* A, const half* B, float* C, int N, int K) {
  int row = blockIdx.y * 16, col = (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.0f);
  for (int k = 0; k < K; k += 16) {
    wmma::load_matrix_sync(a, A + row * K + k, K);
    wmma::load_matrix_sync(b, B + k * N + col, N);
    wmma::mma_sync(c, a, b, c);
  }
  wmma::store_matrix_sync(C + row * N + col, c, N, wmma::mem_row_major);
}

torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  int M = a.size(0), K = a.size(1), N = b.size(1);
  auto c = torch::empty({M, N}, a.options().dtype(torch::kFloat32));
  matmul<<<dim3(N / 32, M / 16), 64>>>((const half*)a.data_ptr<at::Half>(), (const half*)b.data_ptr<at::Half>(), c.data_ptr<float>(), N, K);
  return c;
}
