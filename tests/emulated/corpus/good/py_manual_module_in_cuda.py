# ruff: noqa: F401 - written as models write
"""A module written by hand in the CUDA source, a struct of options, default arguments.

forward: (x * 3.0 + 1.0).clamp(-2.0, 2.0)
inputs: x = torch.randn(100, 3)
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Optional.h>

template <typename T>
__global__ void affine_clamp(const T* __restrict__ in, T* __restrict__ out, int64_t n, T scale, T shift, T lo, T hi) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    T v = in[i] * scale + shift;
    out[i] = v < lo ? lo : (v > hi ? hi : v);
  }
}

at::Tensor affine(const at::Tensor& x, double scale, double shift, c10::optional<double> lo, c10::optional<double> hi) {
  auto in = x.contiguous();
  auto out = at::empty_like(in);
  AT_DISPATCH_ALL_TYPES(in.scalar_type(), "affine", [&] {
    affine_clamp<scalar_t><<<(in.numel() + 127) / 128, 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
        in.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), in.numel(), (scalar_t)scale, (scalar_t)shift,
        (scalar_t)lo.value_or(-1e9), (scalar_t)hi.value_or(1e9));
  });
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  namespace py = pybind11;
  m.def("affine", &affine, "scale, shift, clamp", py::arg("x"), py::arg("scale") = 1.0, py::arg("shift") = 0.0,
        py::arg("lo") = py::none(), py::arg("hi") = py::none());
}
"""
module = load_inline(
    name="affine_by_hand", cpp_sources="", cuda_sources=source, with_cuda=True, extra_cuda_cflags=["-std=c++17"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.affine(x, scale=3.0, shift=1.0, lo=-2.0, hi=2.0)
