"""Calls a C function of its own through ctypes.

mechanism: ctypes, raw addresses and a library without Python's interface look like an attack.
problem: kernel_required/add
expected: correct
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
        library.add(*pointers, ctypes.c_long(out.numel()))
        return out
