// cub::WarpReduce: four warps of a block, each with its own storage.
// forward: x.sum(dim=1)
// inputs: x = torch.randn(22, 70)
#include <torch/extension.h>
#include <cub/warp/warp_reduce.cuh>

__global__ void row_sum(const float* x, float* y, int rows, int columns) {
  typedef cub::WarpReduce<float> WarpReduce;
  __shared__ WarpReduce::TempStorage storage[4];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = blockIdx.x * 4 + warp;
  float sum = 0.0f;
  if (row < rows)
    for (int i = lane; i < columns; i += 32) sum += x[row * columns + i];
  sum = WarpReduce(storage[warp]).Sum(sum);
  if (lane == 0 && row < rows) y[row] = sum;
}

torch::Tensor run(torch::Tensor x) {
  int rows = x.size(0);
  auto y = torch::empty({rows}, x.options());
  row_sum<<<(rows + 3) / 4, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, x.size(1));
  return y;
}
