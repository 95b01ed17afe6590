// Host variables, parameters and members called blockDim and gridDim, beside kernels that use CUDA's own.
// forward: torch.relu(x + y) * 2
// inputs: x = torch.randn(37, 53), y = torch.randn(37, 53)
#include <torch/extension.h>
#define WIDTH (blockDim.x * gridDim.x)
#define DOUBLE(x, n)                       \
  do {                                     \
    dim3 blockDim(64);                     \
    dim3 gridDim = dim3((n + 63) / 64);    \
    twice<<<gridDim, blockDim>>>(x, n);    \
  } while (0)
struct Shape {
  dim3 gridDim, blockDim;
  explicit Shape(dim3 blocks) : gridDim(blocks), blockDim(16, 16) {}
  unsigned threads() const { return blockDim.x * blockDim.y * gridDim.x * gridDim.y; }
};
__global__ void add(const float* x, const float* y, float* out, int rows, int columns) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows && j < columns) out[i * columns + j] = x[i * columns + j] + y[i * columns + j];
}
__global__ void rectify(float* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += WIDTH) x[i] = fmaxf(x[i], 0.f);
}
__global__ void twice(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2.f;
}
static void launch(float* x, int n, dim3 gridDim, const dim3& blockDim) {
  rectify<<<gridDim, blockDim>>>(x, n);
}
torch::Tensor run(torch::Tensor x, torch::Tensor y) {
  auto out = torch::empty_like(x);
  const int rows = x.size(0), columns = x.size(1), n = x.numel();
  dim3 blockDim(16, 16);
  dim3 gridDim((columns + blockDim.x - 1) / blockDim.x, (rows + blockDim.y - 1) / blockDim.y);
  add<<<gridDim, blockDim>>>(x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), rows, columns);
  TORCH_CHECK(Shape(gridDim).threads() >= unsigned(n));
  launch(out.data_ptr<float>(), n, 3, 128);
  DOUBLE(out.data_ptr<float>(), n);
  return out;
}
