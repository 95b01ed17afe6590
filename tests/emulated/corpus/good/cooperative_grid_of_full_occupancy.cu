// Cooperative launches of as many blocks as may be resident, by the occupancy calculator and by the device's limits.
// forward: x + x.sum()
// inputs: x = torch.randn(1000)
#include <torch/extension.h>
#include <cooperative_groups.h>

__global__ void add_sum(const float* x, float* y, float* partial, int n) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  __shared__ float part[32];
  float sum = 0;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += x[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < blockDim.x / 32; ++warp) sum += part[warp];
    partial[blockIdx.x] = sum;
  }
  grid.sync();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) {
    float total = x[i];
    for (int block = 0; block < gridDim.x; ++block) total += partial[block];
    y[i] = total;
  }
}

void launch(torch::Tensor x, torch::Tensor y, int blocks, int threads) {
  auto partial = torch::empty({blocks}, x.options());
  const float* in = x.data_ptr<float>();
  float *out = y.data_ptr<float>(), *parts = partial.data_ptr<float>();
  int n = x.numel();
  void* arguments[] = {&in, &out, &parts, &n};
  cudaLaunchCooperativeKernel((const void*)add_sum, dim3(blocks), dim3(threads), arguments, 0, nullptr);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x), again = torch::empty_like(x);
  int count = 0, each = 0;
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, x.get_device());
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, add_sum, 256, 0);
  launch(x, y, each * count, 256);
  launch(x, again, 2 * count, 256);
  return (y + again) / 2;
}
