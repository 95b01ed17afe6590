// wmma fragments without mma.h.
// forward: x + 1
// inputs: x = torch.randn(6, 6)
// expected: build_error
#include <torch/types.h>
#include <cuda_fp16.h>

__global__ void add_one(const float* x, float* y, int n) {
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> c;
  nvcuda::wmma::fill_fragment(c, 1.0f);
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] + c.x[0];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  add_one<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
