// A launch whose shape is asked from the occupancy calculator and the device's properties.
// forward: x * 7
// inputs: x = torch.randn(44, 44)
#include <torch/extension.h>
#include <algorithm>

__global__ void times_seven(const float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 7.0f * x[i];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel(), least = 0, threads = 0, device = 0, count = 0, per_sm = 0;
  cudaDeviceProp properties;
  cudaGetDevice(&device);
  cudaGetDeviceProperties(&properties, device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  TORCH_CHECK(count == properties.multiProcessorCount && properties.warpSize == 32, "odd properties");
  cudaOccupancyMaxPotentialBlockSize(&least, &threads, times_seven, 0, 0);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, times_seven, threads, 0);
  TORCH_CHECK(least > 0 && threads > 0 && threads <= properties.maxThreadsPerBlock && per_sm > 0, "odd occupancy");
  times_seven<<<std::min((n + threads - 1) / threads, per_sm * count), threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
