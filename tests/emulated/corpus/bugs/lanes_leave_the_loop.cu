// A ballot with a full mask in a loop that lanes leave early.
// forward: (x > 0).sum(dim=1).float()
// inputs: x = torch.randn(12, 50)
// finding: absent_lanes
#include <torch/extension.h>

__global__ void count(const float* x, float* y, int n) {
  int found = 0;
  for (int i = threadIdx.x; i < n; i += 32) found += __popc(__ballot_sync(0xffffffff, x[blockIdx.x * n + i] > 0.0f));
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = found;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  count<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
