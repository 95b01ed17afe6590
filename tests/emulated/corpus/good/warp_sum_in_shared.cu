// The end of a tree within one warp, with __syncwarp between its steps.
// forward: x.sum(dim=1)
// inputs: x = torch.randn(30, 150)
#include <torch/extension.h>

__device__ void warp_tail(volatile float* data, int t) {
  float v = data[t];
  v += data[t + 32]; __syncwarp();
  data[t] = v; __syncwarp();
  v += data[t + 16]; __syncwarp();
  data[t] = v; __syncwarp();
  v += data[t + 8]; __syncwarp();
  data[t] = v; __syncwarp();
  v += data[t + 4]; __syncwarp();
  data[t] = v; __syncwarp();
  v += data[t + 2]; __syncwarp();
  data[t] = v; __syncwarp();
  v += data[t + 1]; __syncwarp();
  data[t] = v;
}

__global__ void row_sum(const float* x, float* y, int columns) {
  __shared__ float data[128];
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int i = t; i < columns; i += 128) sum += x[blockIdx.x * columns + i];
  data[t] = sum;
  __syncthreads();
  if (t < 64) data[t] += data[t + 64];
  __syncthreads();
  if (t < 32) warp_tail(data, t);
  if (t == 0) y[blockIdx.x] = data[0];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  row_sum<<<x.size(0), 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
