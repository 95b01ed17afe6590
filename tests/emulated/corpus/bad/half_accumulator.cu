// Sums a long row in half precision.
// forward: x.float().sum(dim=1)
// inputs: x = torch.rand(4, 4096).half()
// expected: wrong_value
#include <torch/extension.h>
#include <cuda_fp16.h>

__global__ void row_sum(const __half* x, float* y, int columns) {
  __half sum = __float2half(0.0f);
  for (int i = 0; i < columns; ++i) sum = __hadd(sum, x[threadIdx.x * columns + i]);
  y[threadIdx.x] = __half2float(sum);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options().dtype(torch::kFloat));
  row_sum<<<1, x.size(0)>>>((const __half*)x.data_ptr<at::Half>(), y.data_ptr<float>(), x.size(1));
  return y;
}
