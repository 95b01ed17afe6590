// Tensors of the host that no kernel sees: sizes, which host code reads, and a factor without dimensions.
// forward: x.reshape(4, -1).sum(1) * 3
// inputs: x = torch.randn(16, 8)
// returns: ext.run(x, torch.tensor([4, 32])) * torch.tensor(3.)
#include <torch/extension.h>
__global__ void sum_rows(const float* x, float* y, int rows, int width) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = 0; i < width; ++i) sum += x[row * width + i];
  y[row] = sum;
}
torch::Tensor run(torch::Tensor x, torch::Tensor sizes) {
  const int64_t* size = sizes.data_ptr<int64_t>();
  auto y = torch::empty({size[0]}, x.options());
  sum_rows<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), size[0], size[1]);
  sizes.fill_(y.numel());
  return y;
}
