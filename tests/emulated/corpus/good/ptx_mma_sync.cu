// Inline PTX: ldmatrix and mma.sync.m16n8k16, one warp.
// forward: a.float() @ b.float().t()
// inputs: a = torch.randn(16, 32).half(), b = torch.randn(8, 32).half()
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <cstdint>

__global__ void matmul(const half* A, const half* B, float* C) {
  __shared__ __align__(16) half sa[16 * 32];
  __shared__ __align__(16) half sb[8 * 32];
  const int lane = threadIdx.x;
  for (int i = lane; i < 16 * 32; i += 32) sa[i] = A[i];
  for (int i = lane; i < 8 * 32; i += 32) sb[i] = B[i];
  __syncthreads();
  float c[4] = {0.f, 0.f, 0.f, 0.f};
  for (int k = 0; k < 32; k += 16) {
    uint32_t a[4], b[2];
    uint32_t pa = (uint32_t)__cvta_generic_to_shared(&sa[(lane % 16) * 32 + k + (lane / 16) * 8]);
    uint32_t pb = (uint32_t)__cvta_generic_to_shared(&sb[(lane % 8) * 32 + k + (lane / 8 % 2) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(pb));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  int row = lane / 4, col = lane % 4 * 2;
  C[row * 8 + col] = c[0];
  C[row * 8 + col + 1] = c[1];
  C[(row + 8) * 8 + col] = c[2];
  C[(row + 8) * 8 + col + 1] = c[3];
}

torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty({16, 8}, a.options().dtype(torch::kFloat32));
  matmul<<<1, 32>>>((const half*)a.data_ptr<at::Half>(), (const half*)b.data_ptr<at::Half>(), c.data_ptr<float>());
  return c;
}
