// Blocks that fetch their rows from a counter until there are none, and a grid-wide last step.
// forward: x.softmax(-1).sum(0)
// inputs: x = torch.randn(50, 40)
#include <torch/extension.h>
__device__ unsigned int next_row = 0;
__global__ void reset() { next_row = 0; }
__global__ void persistent(const float* x, float* out, int rows, int cols) {
  __shared__ unsigned int row;
  __shared__ float buffer[64];
  while (true) {
    if (threadIdx.x == 0) row = atomicAdd(&next_row, 1u);
    __syncthreads();
    if (row >= rows) break;
    const int t = threadIdx.x;
    const float v = t < cols ? x[row * cols + t] : -INFINITY;
    buffer[t] = v;
    __syncthreads();
    for (int s = 32; s > 0; s /= 2) { if (t < s) buffer[t] = fmaxf(buffer[t], buffer[t + s]); __syncthreads(); }
    const float e = expf(v - buffer[0]);
    __syncthreads();
    buffer[t] = e;
    __syncthreads();
    for (int s = 32; s > 0; s /= 2) { if (t < s) buffer[t] += buffer[t + s]; __syncthreads(); }
    if (t < cols) atomicAdd(out + t, e / buffer[0]);
    __syncthreads();
  }
}
torch::Tensor run(torch::Tensor x) {
  auto out = torch::zeros({x.size(1)}, x.options());
  reset<<<1, 1>>>();
  persistent<<<6, 64>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(0), x.size(1));
  return out;
}
