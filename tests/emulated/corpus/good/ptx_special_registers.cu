// Inline PTX: the lane, the warp, and the number of the block.
// forward: torch.arange(64, device=x.device, dtype=torch.int64).repeat(3, 1) % 32 + 100 * (torch.arange(64, device=x.device) // 32) + 1000 * torch.arange(3, device=x.device)[:, None] + 0 * x.long()
// inputs: x = torch.randn(3, 64)
#include <torch/extension.h>

__global__ void where(int64_t* y) {
  unsigned lane, block;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %%ctaid.x;" : "=r"(block));
  unsigned thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  y[blockIdx.x * 64 + threadIdx.x] = lane + 100 * (thread / 32) + 1000 * block;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({3, 64}, x.options().dtype(torch::kInt64));
  where<<<3, 64>>>(y.data_ptr<int64_t>());
  return y;
}
