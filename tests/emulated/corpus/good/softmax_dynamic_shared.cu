// Softmax of rows; the row lies in dynamic shared memory.
// forward: torch.softmax(x, dim=1)
// inputs: x = torch.randn(19, 211)
#include <torch/extension.h>

__global__ void softmax(const float* x, float* y, int columns) {
  extern __shared__ float row[];
  float* reduced = row + columns;
  const float* in = x + (size_t)blockIdx.x * columns;
  float best = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    row[i] = in[i];
    best = fmaxf(best, in[i]);
  }
  reduced[threadIdx.x] = best;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) reduced[threadIdx.x] = fmaxf(reduced[threadIdx.x], reduced[threadIdx.x + s]);
    __syncthreads();
  }
  best = reduced[0];
  __syncthreads();
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    row[i] = expf(row[i] - best);
    sum += row[i];
  }
  reduced[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) reduced[threadIdx.x] += reduced[threadIdx.x + s];
    __syncthreads();
  }
  for (int i = threadIdx.x; i < columns; i += blockDim.x) y[(size_t)blockIdx.x * columns + i] = row[i] / reduced[0];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int threads = 64;
  size_t bytes = (x.size(1) + threads) * sizeof(float);
  softmax<<<x.size(0), threads, bytes>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
