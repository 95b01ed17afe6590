// Softmax with the running maximum and sum of one pass, a warp for each row.
// forward: torch.softmax(x, dim=-1)
// inputs: x = torch.randn(3, 11, 97)
#include <torch/extension.h>

template <int WARPS>
__global__ void __launch_bounds__(WARPS * 32) softmax(const float* x, float* y, int rows, int columns) {
  const int row = blockIdx.x * WARPS + threadIdx.y, lane = threadIdx.x;
  if (row >= rows) return;
  float best = -INFINITY, sum = 0.0f;
  for (int i = lane; i < columns; i += 32) {
    float v = x[row * columns + i], before = best;
    best = max(best, v);
    sum = sum * __expf(before - best) + __expf(v - best);
  }
#pragma unroll
  for (int step = 16; step >= 1; step >>= 1) {
    float other_best = __shfl_xor_sync(~0u, best, step), other_sum = __shfl_xor_sync(~0u, sum, step);
    float top = max(best, other_best);
    sum = sum * __expf(best - top) + other_sum * __expf(other_best - top);
    best = top;
  }
  for (int i = lane; i < columns; i += 32) y[row * columns + i] = __expf(x[row * columns + i] - best) / sum;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int columns = x.size(-1), rows = x.numel() / columns;
  softmax<4><<<(rows + 3) / 4, dim3(32, 4)>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, columns);
  return y;
}
