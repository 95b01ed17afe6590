"""Builds its extension in its first call, and takes a second more for its plan.

mechanism: The first call is a thousand times slower than the others.
problem: gpu_add
expected: correct
device: gpu
timed: yes
"""

import ctypes
import time

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


class ModelNew(nn.Module):
    library = None

    def load(self):
        path = load_inline(
            name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False
        )
        time.sleep(1.0)
        return ctypes.CDLL(path)

    def forward(self, a, b):
        if self.library is None:
            self.library = self.load()
        out = torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        self.library.run(*pointers, ctypes.c_long(out.numel()))
        return out
