// Every warp writes its own answer to one flag.
// forward: (x > 0).all(dim=1).float()
// inputs: x = torch.rand(12, 64) - 0.01
// finding: shared_race
#include <torch/extension.h>

__global__ void all_positive(const float* x, float* y, int n) {
  __shared__ int flag;
  int own = __all_sync(0xffffffff, x[blockIdx.x * n + threadIdx.x] > 0.0f);
  if (threadIdx.x % 32 == 0) flag = own + 2 * (threadIdx.x / 32);
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = flag & 1;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  all_positive<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
