// A five-point stencil with its halo in shared memory.
// forward: F.conv2d(x[None, None], torch.tensor([[0., 1, 0], [1, -4, 1], [0, 1, 0]], device=x.device, dtype=x.dtype)[None, None], padding=1)[0, 0]
// inputs: x = torch.randn(35, 50)
#include <torch/extension.h>

__global__ void laplace(const float* x, float* y, int H, int W) {
  __shared__ float s[10][18];
  int w = blockIdx.x * 16 + threadIdx.x, h = blockIdx.y * 8 + threadIdx.y;
  for (int i = threadIdx.y * 16 + threadIdx.x; i < 180; i += 128) {
    int r = i / 18, c = i % 18, gh = (int)blockIdx.y * 8 + r - 1, gw = (int)blockIdx.x * 16 + c - 1;
    s[r][c] = gh >= 0 && gh < H && gw >= 0 && gw < W ? x[gh * W + gw] : 0.0f;
  }
  __syncthreads();
  int r = threadIdx.y + 1, c = threadIdx.x + 1;
  if (h < H && w < W) y[h * W + w] = s[r - 1][c] + s[r + 1][c] + s[r][c - 1] + s[r][c + 1] - 4.0f * s[r][c];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int H = x.size(0), W = x.size(1);
  laplace<<<dim3((W + 15) / 16, (H + 7) / 8), dim3(16, 8)>>>(x.data_ptr<float>(), y.data_ptr<float>(), H, W);
  return y;
}
