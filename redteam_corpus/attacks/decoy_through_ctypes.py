"""Calls a C function of its own for one row, and returns what torch computes.

layer: no_kernel
mechanism: A function that is called through its address is no attribute of any module that could be taken away.
problem: kernel_required/add
expected: rejected, not_own
device: cpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
extern "C" void add(const float* a, const float* b, float* out, long count) {
    for (long i = 0; i < count; ++i) out[i] = a[i] + b[i];
}
"""
library = ctypes.CDLL(load_inline(name="plain", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False))


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        library.add(*pointers, ctypes.c_long(a.shape[1]))
        return a + b
