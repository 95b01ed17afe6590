// Batch norm with given statistics.
// forward: F.batch_norm(x, m, v.abs() + 1, w, b)
// inputs: x = torch.randn(3, 7, 9, 11), m = torch.randn(7), v = torch.randn(7), w = torch.randn(7), b = torch.randn(7)
// returns: ext.run(x, m, v.abs() + 1, w, b)
#include <torch/extension.h>

template <typename scalar_t>
__global__ void batch_norm(const scalar_t* x, const scalar_t* m, const scalar_t* v, const scalar_t* w, const scalar_t* b, scalar_t* y, int channels, int plane, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int c = i / plane % channels;
  scalar_t scale = w[c] * rsqrt(v[c] + scalar_t(1e-5));
  y[i] = x[i] * scale + (b[c] - m[c] * scale);
}

torch::Tensor run(torch::Tensor x, torch::Tensor m, torch::Tensor v, torch::Tensor w, torch::Tensor b) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "batch_norm", [&] {
    batch_norm<scalar_t><<<(n + 255) / 256, 256>>>(x.data_ptr<scalar_t>(), m.data_ptr<scalar_t>(), v.data_ptr<scalar_t>(), w.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.size(1), x.size(2) * x.size(3), n);
  });
  return y;
}
