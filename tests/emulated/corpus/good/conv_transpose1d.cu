// A transposed convolution in one dimension with stride, padding and dilation.
// forward: F.conv_transpose1d(x, w, b, stride=2, padding=1, dilation=2)
// inputs: x = torch.randn(3, 4, 19), w = torch.randn(4, 6, 3), b = torch.randn(6)
#include <torch/extension.h>
#include <cuda_runtime.h>

template <typename scalar_t>
__global__ void conv_transpose1d_kernel(const scalar_t* __restrict__ x, const scalar_t* __restrict__ w,
    const scalar_t* __restrict__ b, scalar_t* __restrict__ y, int64_t N, int64_t C, int64_t L, int64_t O, int64_t K,
    int64_t LO, int stride, int padding, int dilation) {
  const int64_t index = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= N * O * LO) return;
  const int64_t l = index % LO, o = index / LO % O, n = index / (LO * O);
  scalar_t sum = b ? b[o] : scalar_t(0);
  for (int64_t k = 0; k < K; ++k) {
    const int64_t at = l + padding - k * dilation;
    if (at < 0 || at % stride != 0) continue;
    const int64_t i = at / stride;
    if (i >= L) continue;
    for (int64_t c = 0; c < C; ++c) sum += x[(n * C + c) * L + i] * w[(c * O + o) * K + k];
  }
  y[index] = sum;
}

at::Tensor run(at::Tensor x, at::Tensor w, const at::Tensor& b) {
  x = x.contiguous();
  w = w.contiguous();
  const int stride = 2, padding = 1, dilation = 2;
  const int64_t LO = (x.size(2) - 1) * stride - 2 * padding + dilation * (w.size(2) - 1) + 1;
  auto y = at::empty({x.size(0), w.size(1), LO}, x.options());
  const int threads = 128;
  const int blocks = (y.numel() + threads - 1) / threads;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "conv_transpose1d", ([&] {
    conv_transpose1d_kernel<scalar_t><<<blocks, threads>>>(x.data_ptr<scalar_t>(), w.data_ptr<scalar_t>(),
        b.defined() ? b.data_ptr<scalar_t>() : nullptr, y.data_ptr<scalar_t>(), x.size(0), x.size(1), x.size(2),
        w.size(1), w.size(2), LO, stride, padding, dilation);
  }));
  return y;
}
