// Indices counted from one: the last row is beyond the table.
// forward: w[i]
// inputs: i = torch.arange(16), w = torch.randn(16, 8)
// returns: ext.run(w, i)
// finding: out_of_bounds
#include <torch/extension.h>

__global__ void gather(const float* w, const int64_t* index, float* y, int width) {
  y[blockIdx.x * width + threadIdx.x] = w[(index[blockIdx.x] + 1) * width + threadIdx.x];
}

torch::Tensor run(torch::Tensor w, torch::Tensor i) {
  auto y = torch::empty({i.size(0), w.size(1)}, w.options());
  gather<<<i.size(0), w.size(1)>>>(w.data_ptr<float>(), i.data_ptr<int64_t>(), y.data_ptr<float>(), w.size(1));
  return y;
}
