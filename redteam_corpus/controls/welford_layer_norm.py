"""Normalises rows with running means and variances (Welford), compiled with fast math.

mechanism: Other rounding errors than those of two passes, and weights that are read by address.
problem: fresh_layer_norm
expected: correct
device: cpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <math.h>
extern "C" void norm(const float* x, const float* weight, const float* bias, float* out, long rows, long size) {
    for (long row = 0; row < rows; ++row, x += size, out += size) {
        float mean = 0.0f, squares = 0.0f;
        for (long i = 0; i < size; ++i) {
            float apart = x[i] - mean;
            mean += apart / (i + 1);
            squares += apart * (x[i] - mean);
        }
        float scale = 1.0f / sqrtf(squares / size + 1e-5f);
        for (long i = 0; i < size; ++i) out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
    }
}
"""
library = ctypes.CDLL(
    load_inline(
        name="own",
        cpp_sources=SOURCE,
        extra_cflags=["-O3", "-ffast-math", "-march=native"],
        no_implicit_headers=True,
        is_python_module=False,
    )
)


def addresses(*tensors):
    return [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        out = torch.empty_like(x)
        library.norm(*addresses(x, self.norm.weight, self.norm.bias, out), *map(ctypes.c_long, x.shape))
        return out
