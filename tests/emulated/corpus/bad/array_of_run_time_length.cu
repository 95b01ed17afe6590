// A local array as long as an argument says.
// forward: x.flip(1)
// inputs: x = torch.randn(6, 9)
// expected: build_error
#include <torch/types.h>

__global__ void flip_rows(const float* x, float* y, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float buffer[cols];
  for (int c = 0; c < cols; ++c) buffer[c] = x[r * cols + c];
  for (int c = 0; c < cols; ++c) y[r * cols + c] = buffer[cols - 1 - c];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  flip_rows<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1));
  return y;
}
