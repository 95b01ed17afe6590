// Softmax in one pass over each row: maxima and sums travel together through shuffles.
// forward: torch.softmax(x, dim=-1)
// inputs: x = torch.randn(21, 777) * 4
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <c10/cuda/CUDAException.h>

constexpr int WARP_SIZE = 32;
constexpr int BLOCK = 256;

struct __align__(8) MD { float m; float d; };

__device__ __forceinline__ MD reduce_md(MD a, MD b) {
  const bool a_bigger = (a.m > b.m);
  MD bigger = a_bigger ? a : b;
  MD smaller = a_bigger ? b : a;
  MD res;
  res.d = bigger.d + smaller.d * __expf(smaller.m - bigger.m);
  res.m = bigger.m;
  return res;
}

__device__ __forceinline__ MD warp_reduce(MD v) {
#pragma unroll
  for (int offset = WARP_SIZE >> 1; offset > 0; offset >>= 1) {
    MD other;
    other.m = __shfl_xor_sync(0xffffffff, v.m, offset);
    other.d = __shfl_xor_sync(0xffffffff, v.d, offset);
    v = reduce_md(v, other);
  }
  return v;
}

__global__ void online_softmax(const float* __restrict__ x, float* __restrict__ y, int cols) {
  const int row = blockIdx.x, tid = threadIdx.x;
  const int lane = tid & (WARP_SIZE - 1), warp = tid / WARP_SIZE;
  x += (size_t)row * cols;
  y += (size_t)row * cols;
  MD partial{-INFINITY, 0.0f};
  for (int i = tid; i < cols; i += BLOCK) partial = reduce_md(partial, MD{x[i], 1.0f});
  partial = warp_reduce(partial);
  __shared__ MD shared[BLOCK / WARP_SIZE];
  if (lane == 0) shared[warp] = partial;
  __syncthreads();
  if (warp == 0) {
    MD v = lane < BLOCK / WARP_SIZE ? shared[lane] : MD{-INFINITY, 0.0f};
    v.m = v.m == -INFINITY ? -1e30f : v.m;
    v = warp_reduce(v);
    if (lane == 0) shared[0] = v;
  }
  __syncthreads();
  const MD total = shared[0];
  const float inv = __fdividef(1.0f, total.d);
  for (int i = tid; i < cols; i += BLOCK) y[i] = __expf(x[i] - total.m) * inv;
}

torch::Tensor run(torch::Tensor x) {
  TORCH_CHECK(x.dim() == 2 && x.is_cuda() && x.dtype() == torch::kFloat32, "expected a 2D float CUDA tensor");
  auto y = torch::empty_like(x);
  online_softmax<<<x.size(0), BLOCK>>>(x.data_ptr<float>(), y.data_ptr<float>(), static_cast<int>(x.size(1)));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
