// Causal attention, a block for each query; scores in dynamic shared memory.
// forward: F.scaled_dot_product_attention(q, k, v, is_causal=True)
// inputs: q = torch.randn(2, 2, 21, 16), k = torch.randn(2, 2, 21, 16), v = torch.randn(2, 2, 21, 16)
#include <torch/extension.h>

__global__ void attention(const float* q, const float* k, const float* v, float* o, int length, int d, float scale) {
  extern __shared__ float scores[];
  const int row = blockIdx.x;
  const size_t base = (size_t)blockIdx.y * length * d;
  for (int j = threadIdx.x; j <= row; j += blockDim.x) {
    float dot = 0.0f;
    for (int i = 0; i < d; ++i) dot += q[base + row * d + i] * k[base + j * d + i];
    scores[j] = dot * scale;
  }
  __syncthreads();
  __shared__ float best, sum;
  if (threadIdx.x == 0) {
    best = -1e30f;
    for (int j = 0; j <= row; ++j) best = fmaxf(best, scores[j]);
    sum = 0.0f;
    for (int j = 0; j <= row; ++j) sum += expf(scores[j] - best);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < d; i += blockDim.x) {
    float acc = 0.0f;
    for (int j = 0; j <= row; ++j) acc += expf(scores[j] - best) * v[base + j * d + i];
    o[base + row * d + i] = acc / sum;
  }
}

torch::Tensor run(torch::Tensor q, torch::Tensor k, torch::Tensor v) {
  auto o = torch::empty_like(q);
  int length = q.size(2), d = q.size(3);
  attention<<<dim3(length, q.size(0) * q.size(1)), 32, length * sizeof(float)>>>(q.data_ptr<float>(), k.data_ptr<float>(), v.data_ptr<float>(), o.data_ptr<float>(), length, d, 1.0f / sqrtf((float)d));
  return o;
}
