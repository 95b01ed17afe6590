// Attention by blocks of keys with a running softmax; tiles in one dynamic array.
// forward: F.scaled_dot_product_attention(q, k, v)
// inputs: q = torch.randn(3, 40, 16), k = torch.randn(3, 40, 16), v = torch.randn(3, 40, 16)
#include <torch/extension.h>

template <int D, int BR, int BC>
__global__ void flash(const float* Q, const float* K, const float* V, float* O, int n) {
  extern __shared__ __align__(16) unsigned char raw[];
  float* ks = reinterpret_cast<float*>(raw);
  float* vs = ks + BC * D;
  const int row = blockIdx.x * BR + threadIdx.x, base = blockIdx.y * n * D;
  float q[D], acc[D], best = -INFINITY, sum = 0.0f;
#pragma unroll
  for (int i = 0; i < D; ++i) { q[i] = row < n ? Q[base + row * D + i] : 0.0f; acc[i] = 0.0f; }
  for (int j0 = 0; j0 < n; j0 += BC) {
    for (int i = threadIdx.x; i < BC * D; i += BR) {
      bool inside = j0 + i / D < n;
      ks[i] = inside ? K[base + j0 * D + i] : 0.0f;
      vs[i] = inside ? V[base + j0 * D + i] : 0.0f;
    }
    __syncthreads();
    for (int j = 0; j < min(BC, n - j0); ++j) {
      float s = 0.0f;
      for (int i = 0; i < D; ++i) s = fmaf(q[i], ks[j * D + i], s);
      s *= rsqrtf((float)D);
      float top = fmaxf(best, s), keep = __expf(best - top), p = __expf(s - top);
      sum = sum * keep + p;
      for (int i = 0; i < D; ++i) acc[i] = acc[i] * keep + p * vs[j * D + i];
      best = top;
    }
    __syncthreads();
  }
  if (row < n)
    for (int i = 0; i < D; ++i) O[base + row * D + i] = acc[i] / sum;
}

torch::Tensor run(torch::Tensor q, torch::Tensor k, torch::Tensor v) {
  auto o = torch::zeros_like(q);
  int n = q.size(1);
  constexpr int bytes = 2 * 16 * 16 * sizeof(float);
  flash<16, 32, 16><<<dim3((n + 31) / 32, q.size(0)), 32, bytes>>>(q.data_ptr<float>(), k.data_ptr<float>(), v.data_ptr<float>(), o.data_ptr<float>(), n);
  return o;
}
