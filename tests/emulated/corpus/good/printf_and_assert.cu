// printf that is not reached, an assertion that holds, and the clock.
// forward: x.clone()
// inputs: x = torch.rand(15, 20)
#include <torch/extension.h>
#include <cassert>
#include <cstdio>

__global__ void copy(const float* x, float* y, int n) {
  long long began = clock64();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    assert(!isnan(x[i]));
    if (x[i] > 1e30f) printf("thread %d: %f\n", i, x[i]);
    y[i] = clock64() >= began ? x[i] : -1.0f;
  }
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  copy<<<(n + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
