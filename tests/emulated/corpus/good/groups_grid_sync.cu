// A cooperative launch: all blocks meet between the sum and the division.
// forward: x / x.sum()
// inputs: x = torch.rand(30, 50) + 0.5
#include <torch/extension.h>
#include <cooperative_groups.h>

__global__ void normalise(const float* x, float* y, float* sum, int n) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  float own = 0.0f;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) own += x[i];
  atomicAdd(sum, own);
  grid.sync();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) y[i] = x[i] / *sum;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x), sum = torch::zeros({1}, x.options());
  const float* in = x.data_ptr<float>();
  float *out = y.data_ptr<float>(), *total = sum.data_ptr<float>();
  int n = x.numel();
  void* args[] = {&in, &out, &total, &n};
  cudaError_t status = cudaLaunchCooperativeKernel((void*)normalise, dim3(4), dim3(64), args, 0, 0);
  TORCH_CHECK(status == cudaSuccess, cudaGetErrorString(status));
  return y;
}
