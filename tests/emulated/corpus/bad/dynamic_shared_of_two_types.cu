// Dynamic shared memory of one name in a template that is used for two types.
// forward: x.flip(0)
// inputs: x = torch.randn(64)
// expected: build_error
#include <torch/types.h>

template <typename scalar_t>
__global__ void flip(const scalar_t* x, scalar_t* y, int n) {
  extern __shared__ scalar_t buffer[];
  buffer[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = buffer[n - 1 - threadIdx.x];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "flip", [&] {
    flip<scalar_t><<<1, n, n * sizeof(scalar_t)>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n);
  });
  return y;
}
