"""PYBIND11_MODULE in the CUDA source, keyword arguments, streams and events in Python around it.

forward: (a - b).abs()
inputs: a = torch.randn(18, 18), b = torch.randn(18, 18)
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <pybind11/pybind11.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void distance(const float* a, const float* b, float* c, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) c[i] = fabsf(a[i] - b[i]);
}
at::Tensor distance_cuda(const at::Tensor& a, const at::Tensor& b, std::optional<int64_t> threads) {
  auto c = at::empty_like(a);
  long n = a.numel(), t = threads.value_or(64);
  auto stream = at::cuda::getCurrentCUDAStream().stream();
  distance<<<(n + t - 1) / t, t, 0, stream>>>(
      a.const_data_ptr<float>(), b.const_data_ptr<float>(), c.mutable_data_ptr<float>(), n);
  AT_ASSERT(cudaGetLastError() == cudaSuccess);
  return c;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("distance", &distance_cuda, py::arg("a"), py::arg("b"), py::arg("threads") = py::none());
}
"""
ext = load_inline("distance_ext", cpp_sources="", cuda_sources=source)


class ModelNew(nn.Module):
    def forward(self, a, b):
        assert a.is_cuda and torch.cuda.is_available() and torch.cuda.current_device() == a.device.index
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        stream = torch.cuda.current_stream()
        start.record(stream)
        out = ext.distance(a=a.cuda(), b=b.to(a.device), threads=32)
        stop.record(stream)
        torch.cuda.synchronize()
        return out
