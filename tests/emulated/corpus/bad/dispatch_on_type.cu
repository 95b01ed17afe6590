// AT_DISPATCH on `.type()`, which is no scalar type any more.
// forward: x + 1
// inputs: x = torch.randn(6, 6)
// expected: build_error
#include <torch/extension.h>

template <typename T>
__global__ void add_one(const T* x, T* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] + T(1);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.type(), "add_one", ([&] {
    add_one<scalar_t><<<1, 64>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel());
  }));
  return y;
}
