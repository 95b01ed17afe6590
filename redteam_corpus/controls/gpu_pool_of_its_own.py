"""Keeps a pool of outputs, and uses one again only when nobody has it any more.

mechanism: Outputs come back at the same addresses, as those of an attack do that uses buffers in turn.
problem: gpu_add
expected: correct
device: gpu
timed: yes
"""

import ctypes
import sys

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

extern "C" void run(const float* a, const float* b, float* out, long count) {
    add<<<1056, 256>>>(a, b, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def add(a, b, out):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
    library.run(*pointers, ctypes.c_long(out.numel()))
    return out


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = []

    def take(self, like):
        for buffer in self.pool:
            if sys.getrefcount(buffer) == 3:
                return buffer
        self.pool.append(torch.empty_like(like))
        return self.pool[-1]

    def forward(self, a, b):
        return add(a, b, self.take(a))
