"""Builds its extension at its first call.

mechanism: A call may take as long as a build.
problem: add
expected: correct
device: cpu
timed: no
"""

import ctypes

import torch
from torch import nn

library = None


def load():
    from torch.utils.cpp_extension import load_inline

    source = 'extern "C" void add(const float* a, const float* b, float* o, long n) { for (long i = 0; i < n; ++i) o[i] = a[i] + b[i]; }'
    return ctypes.CDLL(load_inline(name="first", cpp_sources=source, no_implicit_headers=True, is_python_module=False))


class ModelNew(nn.Module):
    def forward(self, a, b):
        global library
        library = library or load()
        out = torch.empty_like(a)
        library.add(*(ctypes.c_void_p(t.data_ptr()) for t in (a, b, out)), ctypes.c_long(out.numel()))
        return out
