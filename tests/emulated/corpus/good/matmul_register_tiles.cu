// A matrix product: 32 x 32 tiles, 4 x 4 elements in the registers of each thread.
// forward: a @ b
// inputs: a = torch.randn(70, 41), b = torch.randn(41, 50)
#include <torch/extension.h>

template <int BM, int BN, int BK, int TM, int TN>
__global__ void matmul(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
  __shared__ float As[BK][BM];
  __shared__ float Bs[BK][BN];
  constexpr int threads = (BM / TM) * (BN / TN);
  const int t = threadIdx.x, tr = t / (BN / TN) * TM, tc = t % (BN / TN) * TN;
  const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
  float acc[TM][TN] = {};
  for (int k0 = 0; k0 < K; k0 += BK) {
    for (int i = t; i < BM * BK; i += threads) {
      int r = i / BK, k = i % BK;
      As[k][r] = row0 + r < M && k0 + k < K ? A[(row0 + r) * K + k0 + k] : 0.0f;
    }
    for (int i = t; i < BK * BN; i += threads) {
      int k = i / BN, c = i % BN;
      Bs[k][c] = col0 + c < N && k0 + k < K ? B[(k0 + k) * N + col0 + c] : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < BK; ++k) {
      float ra[TM], rb[TN];
#pragma unroll
      for (int i = 0; i < TM; ++i) ra[i] = As[k][tr + i];
#pragma unroll
      for (int j = 0; j < TN; ++j) rb[j] = Bs[k][tc + j];
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) acc[i][j] += ra[i] * rb[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < TN; ++j)
      if (row0 + tr + i < M && col0 + tc + j < N) C[(row0 + tr + i) * N + col0 + tc + j] = acc[i][j];
}

torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  int M = a.size(0), K = a.size(1), N = b.size(1);
  auto c = torch::empty({M, N}, a.options());
  dim3 grid((N + 31) / 32, (M + 31) / 32);
  matmul<32, 32, 8, 4, 4><<<grid, 64>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), M, N, K);
  return c;
}
