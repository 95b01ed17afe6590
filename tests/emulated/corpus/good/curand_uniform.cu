// Random numbers of the device: dropout that keeps everything, from a generator that was really drawn from.
// forward: x * 2
// inputs: x = torch.randn(20, 30)
#include <torch/extension.h>
#include <curand_kernel.h>

__global__ void dropout(const float* x, float* y, int n, float drop, unsigned long long seed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, i, 0, &state);
  float u = curand_uniform(&state);
  float4 g = curand_normal4(&state);
  bool usual = u > 0.0f && u <= 1.0f && fabsf(g.x + g.y + g.z + g.w) < 40.0f;
  y[i] = usual && u > drop ? x[i] * 2.0f : NAN;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  dropout<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, 0.0f, 1234ULL);
  return y;
}
