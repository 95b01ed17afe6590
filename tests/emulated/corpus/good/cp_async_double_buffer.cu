// Tiles that are copied in the background while others are used, by inline PTX.
// forward: a @ b
// inputs: a = torch.randn(64, 64), b = torch.randn(64, 64)
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cstdint>
#define CP_ASYNC_CG(dst, src, bytes) asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2;\n" ::"r"(dst), "l"(src), "n"(bytes))
#define CP_ASYNC_COMMIT_GROUP() asm volatile("cp.async.commit_group;\n" ::)
#define CP_ASYNC_WAIT_GROUP(n) asm volatile("cp.async.wait_group %0;\n" ::"n"(n))
template <int TILE>
__global__ void mm_async(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
  __shared__ __align__(16) float sa[2][TILE][TILE], sb[2][TILE][TILE];
  const int tx = threadIdx.x, ty = threadIdx.y, tid = ty * TILE + tx;
  const int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
  auto stage = [&](int s, int k0) {
    if (tid < TILE * TILE / 4) {
      const int r = tid / (TILE / 4), c = (tid % (TILE / 4)) * 4;
      uint32_t da = (uint32_t)__cvta_generic_to_shared(&sa[s][r][c]);
      uint32_t db = static_cast<uint32_t>(__cvta_generic_to_shared(&sb[s][r][c]));
      CP_ASYNC_CG(da, &A[(blockIdx.y * TILE + r) * N + k0 + c], 16);
      CP_ASYNC_CG(db, &B[(k0 + r) * N + blockIdx.x * TILE + c], 16);
    }
    CP_ASYNC_COMMIT_GROUP();
  };
  float acc = 0;
  stage(0, 0);
  for (int k0 = 0, s = 0; k0 < N; k0 += TILE, s ^= 1) {
    if (k0 + TILE < N) { stage(s ^ 1, k0 + TILE); CP_ASYNC_WAIT_GROUP(1); } else { CP_ASYNC_WAIT_GROUP(0); }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) acc = fmaf(sa[s][ty][k], sb[s][k][tx], acc);
    __syncthreads();
  }
  C[row * N + col] = acc;
}
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty_like(a);
  int N = a.size(0);
  mm_async<16><<<dim3(N / 16, N / 16), dim3(16, 16)>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), N);
  return c;
}
