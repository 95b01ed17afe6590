// Operators of half, which torch's flags take away.
// forward: a + b
// inputs: a = torch.randn(6, 6).half(), b = torch.randn(6, 6).half()
// expected: build_error
#include <torch/types.h>
#include <cuda_fp16.h>

__global__ void add(const __half* a, const __half* b, __half* c, int n) {
  if (threadIdx.x < n) c[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty_like(a);
  add<<<1, 64>>>((const __half*)a.data_ptr<at::Half>(), (const __half*)b.data_ptr<at::Half>(), (__half*)c.data_ptr<at::Half>(), a.numel());
  return c;
}
