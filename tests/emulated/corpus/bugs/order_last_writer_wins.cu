// Every row writes its number where its largest element falls; the last to come stays.
// forward: torch.stack([((x.argmax(dim=1) % 4 == k).int() * torch.arange(1, 13, device=x.device, dtype=torch.int32)).max() for k in range(4)]).float()
// inputs: x = torch.randn(12, 64)
// finding: global_race|order
#include <torch/extension.h>

__global__ void mark(const float* x, float* y, int n) {
  if (threadIdx.x != 0) return;
  int best = 0;
  for (int i = 1; i < n; ++i)
    if (x[blockIdx.x * n + i] > x[blockIdx.x * n + best]) best = i;
  y[best % 4] = blockIdx.x + 1;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::zeros({4}, x.options());
  mark<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
