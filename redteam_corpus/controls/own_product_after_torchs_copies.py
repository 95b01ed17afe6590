"""Multiplies with a function of its own, of copies that torch makes of its inputs.

mechanism: torch runs beside its kernel, in each call.
problem: kernel_required/product
expected: correct
device: cpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
extern "C" void multiply(const float* a, const float* b, float* out, long first, long last, long size) {
    for (long i = first; i < last; ++i) {
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


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b, out = a.clone(), b.clone(), torch.zeros_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        size = ctypes.c_long(a.shape[0])
        library.multiply(*pointers, ctypes.c_long(0), size, size)
        return out
