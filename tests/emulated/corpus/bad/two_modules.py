"""PYBIND11_MODULE written by hand and asked for by `functions` as well.

forward: x + 1
inputs: x = torch.randn(6, 6)
expected: build_error
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

cpp = """
torch::Tensor add_one(torch::Tensor x);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("add_one", &add_one); }
"""
cuda = """
#include <torch/extension.h>
__global__ void kernel(const float* x, float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] + 1.0f;
}
torch::Tensor add_one(torch::Tensor x) {
  auto y = torch::empty_like(x);
  kernel<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
"""
ext = load_inline("add_one_twice", cpp_sources=cpp, cuda_sources=cuda, functions=["add_one"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.add_one(x)
