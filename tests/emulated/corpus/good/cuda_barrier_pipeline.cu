// Copies to shared memory that are waited for at a barrier object.
// forward: x * 2 + x.flip(0) * 0
// inputs: x = torch.randn(1000)
#include <torch/extension.h>
#include <cooperative_groups.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;
#pragma nv_diag_suppress static_var_with_dynamic_init
__global__ void copy_and_double(const float* in, float* out, int n) {
  using barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ barrier bar;
  __shared__ float tile[128];
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&bar, block.size());
  block.sync();
  for (int base = blockIdx.x * 128; base < n; base += gridDim.x * 128) {
    const int count = min(128, n - base);
    cuda::memcpy_async(block, tile, in + base, sizeof(float) * count, bar);
    bar.arrive_and_wait();
    if (threadIdx.x < count) out[base + threadIdx.x] = 2 * tile[threadIdx.x];
    barrier::arrival_token token = bar.arrive();
    bar.wait(std::move(token));
  }
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  copy_and_double<<<3, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
