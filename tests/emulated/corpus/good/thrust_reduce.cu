// thrust: a device_vector, fill, a reduction and a scan.
// forward: torch.cumsum(x, 0) + x.sum()
// inputs: x = torch.randn(150)
#include <torch/extension.h>
#include <thrust/copy.h>
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/fill.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>

__global__ void add(const float* a, float b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  auto in = thrust::device_pointer_cast(x.data_ptr<float>());
  thrust::device_vector<float> sums(n);
  thrust::fill(sums.begin(), sums.end(), 0.0f);
  thrust::inclusive_scan(in, in + n, sums.begin());
  float total = thrust::reduce(in, in + n, 0.0f, thrust::plus<float>());
  add<<<(n + 63) / 64, 64>>>(thrust::raw_pointer_cast(sums.data()), total, y.data_ptr<float>(), n);
  cudaDeviceSynchronize();
  return y;
}
