// Rows gathered by index, a block for each.
// forward: F.embedding(i, w)
// inputs: i = torch.randint(0, 31, (5, 9)), w = torch.randn(31, 27)
#include <torch/extension.h>

__global__ void gather(const long* index, const float* table, float* out, int width) {
  const float* from = table + index[blockIdx.x] * width;
  for (int j = threadIdx.x; j < width; j += blockDim.x) out[blockIdx.x * width + j] = from[j];
}

torch::Tensor run(torch::Tensor i, torch::Tensor w) {
  auto out = torch::empty({i.size(0), i.size(1), w.size(1)}, w.options());
  gather<<<i.numel(), 32>>>(i.data_ptr<long>(), w.data_ptr<float>(), out.data_ptr<float>(), w.size(1));
  return out;
}
