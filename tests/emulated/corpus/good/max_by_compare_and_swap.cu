// The maximum of everything, by atomicCAS on the bits of floats.
// forward: x.max().reshape(1)
// inputs: x = torch.randn(40, 77)
#include <torch/extension.h>

__device__ float atomic_max(float* address, float value) {
  int* bits = (int*)address;
  int old = *bits, assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
  } while (assumed != old);
  return __int_as_float(old);
}

__global__ void find_max(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomic_max(y, x[i]);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::full({1}, -INFINITY, x.options());
  int n = x.numel();
  find_max<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
