// A tile copied asynchronously by the whole block, then used backwards.
// forward: x.flip(1)
// inputs: x = torch.randn(9, 128)
#include <torch/extension.h>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;

__global__ void flip(const float* x, float* y, int columns) {
  extern __shared__ float row[];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, row, x + blockIdx.x * columns, sizeof(float) * columns);
  cg::wait(block);
  for (int i = block.thread_rank(); i < columns; i += block.size()) y[blockIdx.x * columns + i] = row[columns - 1 - i];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  flip<<<x.size(0), 64, x.size(1) * sizeof(float)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
