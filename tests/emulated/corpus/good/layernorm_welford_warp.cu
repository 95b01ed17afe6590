// Layer norm by Welford's method, merged over the lanes of a warp, a row for each warp.
// forward: F.layer_norm(x, (x.shape[-1],), g, b)
// inputs: x = torch.randn(37, 200) * 3 + 5, g = torch.randn(200), b = torch.randn(200)
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ceil_div.h>
#include <c10/cuda/CUDAGuard.h>

template <typename T> __device__ inline void welford_merge(T& mean, T& m2, T& count, T mean_b, T m2_b, T count_b) {
  const T total = count + count_b;
  if (total == T(0)) return;
  const T delta = mean_b - mean;
  mean += delta * count_b / total;
  m2 += m2_b + delta * delta * count * count_b / total;
  count = total;
}

template <typename T, int WARPS>
__global__ void layer_norm_kernel(const T* __restrict__ x, const T* __restrict__ g, const T* __restrict__ b, T* __restrict__ y,
                                  int rows, int cols, T eps) {
  const int row = blockIdx.x * WARPS + threadIdx.y;
  if (row >= rows) return;
  const T* in = x + row * cols;
  T mean = 0, m2 = 0, count = 0;
  for (int i = threadIdx.x; i < cols; i += 32) {
    count += 1;
    const T d = in[i] - mean;
    mean += d / count;
    m2 += d * (in[i] - mean);
  }
  for (int mask = 16; mask; mask /= 2) {
    const T mean_b = __shfl_xor_sync(~0u, mean, mask), m2_b = __shfl_xor_sync(~0u, m2, mask), n_b = __shfl_xor_sync(~0u, count, mask);
    welford_merge(mean, m2, count, mean_b, m2_b, n_b);
  }
  const T rstd = rsqrt(m2 / count + eps);
  for (int i = threadIdx.x; i < cols; i += 32) y[row * cols + i] = (in[i] - mean) * rstd * g[i] + b[i];
}

torch::Tensor run(torch::Tensor x, torch::Tensor g, torch::Tensor b) {
  const at::cuda::OptionalCUDAGuard device_guard(device_of(x));
  auto stream = at::cuda::getCurrentCUDAStream().stream();
  auto y = torch::empty_like(x);
  constexpr int WARPS = 4;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "layer_norm", [&] {
    layer_norm_kernel<scalar_t, WARPS><<<at::ceil_div<int64_t>(x.size(0), WARPS), dim3(32, WARPS), 0, stream>>>(
        x.data_ptr<scalar_t>(), g.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.size(0), x.size(1), 1e-5);
  });
  AT_CUDA_CHECK(cudaGetLastError());
  return y;
}
