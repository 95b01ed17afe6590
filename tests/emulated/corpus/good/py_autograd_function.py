# ruff: noqa: E501, PLR0402 - written as models write
"""An autograd function around two kernels, and a custom class of options bound by pybind11.

forward: torch.where(x > 0, x, torch.zeros_like(x)) ** 2
inputs: x = torch.randn(50, 8)
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SRC = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cuda_fp16.h>

struct Options { int threads; float power; };

__global__ void squared_relu_fwd(const float* x, float* y, int n) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  const float r = fmaxf(x[i], 0.0f);
  y[i] = r * r;
}
__global__ void squared_relu_bwd(const float* gy, const float* x, float* gx, int n) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  gx[i] = gy[i] * 2.0f * fmaxf(x[i], 0.0f);
}
torch::Tensor forward(torch::Tensor x, Options options) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  squared_relu_fwd<<<(n + options.threads - 1) / options.threads, options.threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
torch::Tensor backward(torch::Tensor gy, torch::Tensor x, Options options) {
  auto gx = torch::empty_like(x);
  int n = x.numel();
  squared_relu_bwd<<<(n + options.threads - 1) / options.threads, options.threads>>>(gy.data_ptr<float>(), x.data_ptr<float>(), gx.data_ptr<float>(), n);
  return gx;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  py::class_<Options>(m, "Options").def(py::init([](int threads) { return Options{threads, 2.f}; })).def_readwrite("threads", &Options::threads);
  m.def("forward", &forward, py::call_guard<py::gil_scoped_release>());
  m.def("backward", &backward);
}
"""
ext = load_inline("squared_relu", cpp_sources=[], cuda_sources=[CUDA_SRC])


class SquaredReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return ext.forward(x, ext.Options(128))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return ext.backward(grad.contiguous(), x, ext.Options(64))


class ModelNew(nn.Module):
    def forward(self, x):
        return SquaredReLU.apply(x)
