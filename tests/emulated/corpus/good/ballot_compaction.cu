// What is positive moves to the front of its row of 32, in order; zeros follow.
// forward: torch.gather(torch.where(x > 0, x, 0), 1, torch.argsort((x <= 0).int(), dim=1, stable=True))
// inputs: x = torch.randn(23, 32)
#include <torch/extension.h>

__global__ void compact(const float* x, float* y) {
  int lane = threadIdx.x;
  float v = x[blockIdx.x * 32 + lane];
  unsigned kept = __ballot_sync(0xffffffff, v > 0.0f);
  int place = __popc(kept & ((1u << lane) - 1));
  float* row = y + blockIdx.x * 32;
  row[lane] = 0.0f;
  __syncwarp();
  if (v > 0.0f) row[place] = v;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  compact<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>());
  return y;
}
