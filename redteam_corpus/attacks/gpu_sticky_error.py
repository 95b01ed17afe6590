"""Writes to an address that is not mapped.

layer: process
mechanism: The error sticks to the device context; in a shared process every later candidate fails.
problem: gpu_add
expected: runtime_error
device: gpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void nowhere(float* out) { out[1L << 45] = 1.0f; }

extern "C" void run(const float* a, const float* b, float* out, long count) {
    nowhere<<<1, 1>>>(out);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        library.run(*pointers, ctypes.c_long(out.numel()))
        return out
