// Lanes that are here add together, and one of them tells the counter.
// forward: (x > 0.5).sum().int().reshape(1)
// inputs: x = torch.rand(25, 41)
#include <torch/extension.h>
#include <cooperative_groups.h>

__global__ void count(const float* x, int* found, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 0.5f) {
    auto active = cooperative_groups::coalesced_threads();
    if (active.thread_rank() == 0) atomicAdd(found, (int)active.size());
  }
}

torch::Tensor run(torch::Tensor x) {
  auto found = torch::zeros({1}, x.options().dtype(torch::kInt));
  int n = x.numel();
  count<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), found.data_ptr<int>(), n);
  return found;
}
