// A depthwise convolution; weights in constant memory.
// forward: F.conv2d(x, w, padding=1, groups=5)
// inputs: x = torch.randn(2, 5, 9, 14), w = torch.randn(5, 1, 3, 3)
#include <torch/extension.h>

__constant__ float weights[64 * 9];

__global__ void conv(const float* x, float* y, int C, int H, int W) {
  int plane = blockIdx.x, c = plane % C;
  for (int i = threadIdx.x; i < H * W; i += blockDim.x) {
    int h = i / W, w = i % W;
    float sum = 0.0f;
    for (int a = -1; a <= 1; a++)
      for (int b = -1; b <= 1; b++)
        if ((unsigned)(h + a) < (unsigned)H && (unsigned)(w + b) < (unsigned)W)
          sum += x[plane * H * W + (h + a) * W + w + b] * weights[c * 9 + (a + 1) * 3 + b + 1];
    y[plane * H * W + i] = sum;
  }
}

torch::Tensor run(torch::Tensor x, torch::Tensor w) {
  auto y = torch::empty_like(x);
  cudaMemcpyToSymbol(weights, w.data_ptr<float>(), w.numel() * sizeof(float), 0, cudaMemcpyDeviceToDevice);
  conv<<<x.size(0) * x.size(1), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2), x.size(3));
  return y;
}
