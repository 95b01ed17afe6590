# ruff: noqa: E501 - written as models write
"""Extended lambdas.

forward: (x * torch.sigmoid(x), torch.where(x > 0, x, x * 0.1), x.t() + 0)
inputs: x = torch.randn(21, 34)
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    "lam",
    "#include <torch/extension.h>\nstd::vector<torch::Tensor> run(torch::Tensor x);",
    r"""#include <torch/extension.h>
#include <utility>
template <typename F>
__global__ void apply_kernel(size_t n, F f) { for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) f(i); }
template <typename F>
inline void parallel_for(size_t n, F&& f) { apply_kernel<<<static_cast<unsigned>((n + 255) / 256), 256>>>(n, std::forward<F>(f)); }
template <int N> struct Dims { int v[N]; __host__ __device__ int& operator[](int i) { return v[i]; } __host__ __device__ const int& operator[](int i) const { return v[i]; } };
template <int N, bool kTranspose>
__global__ void strided_copy(const float* in, float* out, Dims<N> sizes, Dims<N> strides, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int rest = i, off = 0;
#pragma unroll
  for (int d = N - 1; d >= 0; --d) { int c = rest % sizes[d]; rest /= sizes[d]; off += c * strides[d]; }
  if constexpr (kTranspose) out[i] = in[off]; else out[off] = in[i];
}
std::vector<torch::Tensor> run(torch::Tensor x) {
  auto a = torch::empty_like(x), b = torch::empty_like(x), c = torch::empty({x.size(1), x.size(0)}, x.options());
  const float* in = x.data_ptr<float>();
  float *pa = a.data_ptr<float>(), *pb = b.data_ptr<float>();
  const float slope = 0.1f;
  parallel_for(x.numel(), [=] __device__(size_t i) { pa[i] = in[i] / (1.0f + expf(-in[i])); });
  auto leaky = [=] __host__ __device__(size_t i) -> void { pb[i] = in[i] > 0.f ? in[i] : slope * in[i]; };
  parallel_for(x.numel(), leaky);
  Dims<2> sizes{{(int)x.size(1), (int)x.size(0)}}, strides{{(int)x.stride(1), (int)x.stride(0)}};
  strided_copy<2, true><<<(x.numel() + 63) / 64, 64>>>(in, c.data_ptr<float>(), sizes, strides, x.numel());
  return {a, b, c};
}
""",
    functions=["run"],
    extra_cuda_cflags=["-O3 --extended-lambda"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return tuple(ext.run(x))
