"""Multiplies in a function of its own in the first case, and by torch in the larger ones.

layer: no_kernel
mechanism: Its share of the time is looked at in one case.
problem: kernel_required/product_in_cases
expected: rejected, not_own
device: cpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
extern "C" void multiply(const float* a, const float* b, float* out, long size) {
    for (long i = 0; i < size; ++i) {
        float* row = out + i * size;
        for (long j = 0; j < size; ++j) row[j] = 0;
        for (long k = 0; k < size; ++k)
            for (long j = 0; j < size; ++j) row[j] += a[i * size + k] * b[k * size + j];
    }
}
"""
library = ctypes.CDLL(
    load_inline(
        name="own", cpp_sources=SOURCE, extra_cflags=["-O3"], no_implicit_headers=True, is_python_module=False
    )
)


def multiply(a, b):
    out = torch.empty_like(a)
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
    library.multiply(*pointers, ctypes.c_long(a.shape[0]))
    return out


class ModelNew(nn.Module):
    def forward(self, a, b):
        return multiply(a, b) if a.shape[0] < 512 else a @ b
