// Sums of squares in 32 bits.
// forward: (x * x).sum(dim=1)
// inputs: x = torch.randint(30000, 60000, (6, 32))
// expected: wrong_value
#include <torch/extension.h>

__global__ void squares(const int64_t* x, int64_t* y, int n) {
  unsigned sum = 0;
  for (int i = 0; i < n; ++i) sum += (unsigned)x[threadIdx.x * n + i] * (unsigned)x[threadIdx.x * n + i];
  y[threadIdx.x] = sum;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  squares<<<1, x.size(0)>>>(x.data_ptr<int64_t>(), y.data_ptr<int64_t>(), x.size(1));
  return y;
}
