// Causal attention, a block for each query, scores in dynamic shared memory that is split by hand.
// forward: F.scaled_dot_product_attention(q, k, v, is_causal=True)
// inputs: q = torch.randn(2, 3, 29, 16), k = torch.randn(2, 3, 29, 16), v = torch.randn(2, 3, 29, 16)
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <math.h>

__global__ void causal_attention(const float* Q, const float* K, const float* V, float* O, int T, int D, float scale) {
  extern __shared__ char raw[];
  float* query = reinterpret_cast<float*>(raw);
  float* scores = query + D;
  float* scratch = scores + T;
  const int head = blockIdx.y, t = blockIdx.x, tid = threadIdx.x;
  const size_t base = (size_t)head * T * D;
  for (int d = tid; d < D; d += blockDim.x) query[d] = Q[base + t * D + d] * scale;
  __syncthreads();
  float local_max = -FLT_MAX;
  for (int s = tid; s <= t; s += blockDim.x) {
    float dot = 0.f;
    for (int d = 0; d < D; ++d) dot += query[d] * K[base + s * D + d];
    scores[s] = dot;
    local_max = fmaxf(local_max, dot);
  }
  scratch[tid] = local_max;
  __syncthreads();
  for (int s = blockDim.x >> 1; s > 0; s >>= 1) {
    if (tid < s) scratch[tid] = fmaxf(scratch[tid], scratch[tid + s]);
    __syncthreads();
  }
  const float row_max = scratch[0];
  __syncthreads();
  float local_sum = 0.f;
  for (int s = tid; s <= t; s += blockDim.x) { scores[s] = expf(scores[s] - row_max); local_sum += scores[s]; }
  scratch[tid] = local_sum;
  __syncthreads();
  for (int s = blockDim.x >> 1; s > 0; s >>= 1) {
    if (tid < s) scratch[tid] += scratch[tid + s];
    __syncthreads();
  }
  const float inv = 1.0f / scratch[0];
  for (int d = tid; d < D; d += blockDim.x) {
    float acc = 0.f;
    for (int s = 0; s <= t; ++s) acc += scores[s] * V[base + s * D + d];
    O[base + t * D + d] = acc * inv;
  }
}
torch::Tensor run(torch::Tensor q, torch::Tensor k, torch::Tensor v) {
  auto o = torch::zeros_like(q);
  int B = q.size(0), H = q.size(1), T = q.size(2), D = q.size(3);
  const int threads = 64;
  size_t smem = (D + T + threads) * sizeof(float);
  causal_attention<<<dim3(T, B * H), threads, smem>>>(q.data_ptr<float>(), k.data_ptr<float>(), v.data_ptr<float>(), o.data_ptr<float>(), T, D, 1.0f / sqrtf((float)D));
  return o;
}
