// Nearest upsampling by two.
// forward: F.interpolate(x, scale_factor=2, mode="nearest")
// inputs: x = torch.randn(2, 3, 7, 9)
#include <torch/extension.h>

__global__ void upsample(const float* __restrict__ x, float* __restrict__ y, const int H, const int W) {
  const int w = blockIdx.x * blockDim.x + threadIdx.x, h = blockIdx.y * blockDim.y + threadIdx.y;
  if (w < 2 * W && h < 2 * H) y[(blockIdx.z * 2 * H + h) * 2 * W + w] = x[(blockIdx.z * H + (h >> 1)) * W + (w >> 1)];
}

torch::Tensor run(torch::Tensor x) {
  auto x_contiguous = x.contiguous();
  int H = x.size(2), W = x.size(3);
  auto y = at::empty({x.size(0), x.size(1), 2 * H, 2 * W}, x.options());
  upsample<<<dim3((2 * W + 15) / 16, (2 * H + 3) / 4, x.size(0) * x.size(1)), dim3(16, 4)>>>(x_contiguous.data_ptr<float>(), y.data_ptr<float>(), H, W);
  return y;
}
