// Layer norm with weight and bias.
// forward: F.layer_norm(x, (87,), w, b)
// inputs: x = torch.randn(15, 87), w = torch.randn(87), b = torch.randn(87)
#include <torch/extension.h>

__device__ float block_sum(float v, float* shared) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0.0f;
  for (int i = 0; i < (int)blockDim.x / 32; ++i) v += shared[i];
  return v;
}

__global__ void layer_norm(const float* x, const float* w, const float* b, float* y, int d, float eps) {
  __shared__ float shared[32];
  const float* row = x + blockIdx.x * d;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < d; i += blockDim.x) sum += row[i];
  const float mean = block_sum(sum, shared) / d;
  float square = 0.0f;
  for (int i = threadIdx.x; i < d; i += blockDim.x) square += (row[i] - mean) * (row[i] - mean);
  const float scale = rsqrtf(block_sum(square, shared) / d + eps);
  for (int i = threadIdx.x; i < d; i += blockDim.x) y[blockIdx.x * d + i] = (row[i] - mean) * scale * w[i] + b[i];
}

torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  auto y = torch::empty_like(x);
  layer_norm<<<x.size(0), 64>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), x.size(1), 1e-5f);
  return y;
}
