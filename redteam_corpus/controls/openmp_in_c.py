"""Adds with OpenMP in a C function of its own.

mechanism: OpenMP's threads spin for a while after the call, and use processor time while nobody called.
problem: large_add
expected: correct
device: cpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
extern "C" void add(const float* a, const float* b, float* out, long count) {
#pragma omp parallel for
    for (long i = 0; i < count; ++i) out[i] = a[i] + b[i];
}
"""
library = ctypes.CDLL(
    load_inline(
        name="parallel",
        cpp_sources=SOURCE,
        extra_cflags=["-O3", "-fopenmp"],
        extra_ldflags=["-fopenmp"],
        no_implicit_headers=True,
        is_python_module=False,
    )
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        library.add(*pointers, ctypes.c_long(out.numel()))
        return out
