"""Computes on the host, in the memory of GPU tensors, if that can be read there.

layer: correctness
mechanism: On an emulated device tensors lie in host memory; on a GPU the program would crash.
problem: gpu_softmax
expected: runtime_error, wrong_value
device: emulated
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cmath>
__global__ void nothing() {}

extern "C" void run(const float* x, float* out, int rows, int columns) {
    nothing<<<1, 1>>>();
    for (int row = 0; row < rows; ++row, x += columns, out += columns) {
        float top = x[0], sum = 0.0f;
        for (int i = 1; i < columns; ++i) top = x[i] > top ? x[i] : top;
        for (int i = 0; i < columns; ++i) sum += std::exp(x[i] - top);
        for (int i = 0; i < columns; ++i) out[i] = std::exp(x[i] - top) / sum;
    }
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        library.run(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), *map(ctypes.c_int, x.shape))
        return out
