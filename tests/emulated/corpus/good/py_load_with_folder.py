# ruff: noqa: E501, F401, PLR0402, PTH118, PTH123 - written as models write
"""Sources written to a folder of their own with a header for the device, built by `load` with include paths.

forward: torch.sigmoid(x) * x
inputs: x = torch.randn(64, 10)
"""

import os
import tempfile

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load

_dir = tempfile.mkdtemp(prefix="ext_")
with open(os.path.join(_dir, "math_utils.cuh"), "w") as f:
    f.write("""
#ifndef MATH_UTILS_CUH
#define MATH_UTILS_CUH
#include <cuda_fp16.h>
template <typename T> struct Accum { using type = T; };
template <> struct Accum<__half> { using type = float; };
template <typename T>
__host__ __device__ __forceinline__ T ceil_div(T a, T b) { return (a + b - 1) / b; }
namespace ops {
__device__ inline float swish(float x) { return x / (1.0f + expf(-x)); }
}
#endif
""")
with open(os.path.join(_dir, "swish_kernel.cu"), "w") as f:
    f.write("""
#include "math_utils.cuh"
#include <torch/types.h>
#include <cuda_runtime.h>
__global__ void swish_kernel(const float4* __restrict__ x, float4* __restrict__ y, int n4) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n4) {
    float4 v = x[i];
    y[i] = make_float4(ops::swish(v.x), ops::swish(v.y), ops::swish(v.z), ops::swish(v.w));
  }
}
void swish_cuda(const torch::Tensor& x, torch::Tensor& y) {
  int n4 = x.numel() / 4;
  swish_kernel<<<ceil_div(n4, 64), 64>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()), reinterpret_cast<float4*>(y.data_ptr<float>()), n4);
}
""")
with open(os.path.join(_dir, "binding.cpp"), "w") as f:
    f.write("""
#include <torch/extension.h>
void swish_cuda(const torch::Tensor& x, torch::Tensor& y);
torch::Tensor swish(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "CUDA only");
  auto y = torch::empty_like(x);
  swish_cuda(x, y);
  return y;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("swish", &swish); }
""")
_ext = load(
    name="swish_ext",
    sources=[os.path.join(_dir, "binding.cpp"), os.path.join(_dir, "swish_kernel.cu")],
    extra_include_paths=[_dir],
    extra_cuda_cflags=["-O3", "--use_fast_math"],
    verbose=False,
)


class ModelNew(nn.Module):
    def forward(self, x):
        return _ext.swish(x)
