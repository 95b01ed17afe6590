// Rows added where an index says, by atomics.
// forward: torch.zeros(8, 15, device=x.device, dtype=x.dtype).index_add(0, i, x)
// inputs: x = torch.randn(40, 15), i = torch.randint(0, 8, (40,))
#include <torch/extension.h>

__global__ void scatter(const float* x, const int64_t* index, float* y, int rows, int width) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row < rows && threadIdx.x < width) atomicAdd(&y[index[row] * width + threadIdx.x], x[row * width + threadIdx.x]);
}

torch::Tensor run(torch::Tensor x, torch::Tensor i) {
  auto y = torch::zeros({8, x.size(1)}, x.options());
  scatter<<<(x.size(0) + 7) / 8, dim3(16, 8)>>>(x.data_ptr<float>(), i.data_ptr<int64_t>(), y.data_ptr<float>(), x.size(0), x.size(1));
  return y;
}
