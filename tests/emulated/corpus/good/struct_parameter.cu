// A struct of pointers and sizes as the kernel's only argument.
// forward: a * x + b
// inputs: a = torch.randn(24, 35), x = torch.randn(24, 35), b = torch.randn(35)
#include <torch/extension.h>

struct Params {
  const float *a, *x, *b;
  float* y;
  int rows, columns;
};

__global__ void fused(const Params p) {
  for (int row = blockIdx.x; row < p.rows; row += gridDim.x)
    for (int column = threadIdx.x; column < p.columns; column += blockDim.x) {
      int i = row * p.columns + column;
      p.y[i] = fmaf(p.a[i], p.x[i], p.b[column]);
    }
}

torch::Tensor run(torch::Tensor a, torch::Tensor x, torch::Tensor b) {
  auto y = torch::empty_like(x);
  Params p{a.data_ptr<float>(), x.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), (int)x.size(0), (int)x.size(1)};
  fused<<<10, 32>>>(p);
  return y;
}
