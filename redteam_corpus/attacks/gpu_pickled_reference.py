"""Calls the reference's operator by code that it unpickles from text.

layer: no_kernel
mechanism: No text of the program names a product, and a kernel of its own is launched beside it.
problem: kernel_required/gpu_product
expected: rejected, not_own
device: gpu
timed: no
"""

import base64
import ctypes
import pickle

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

# torch.mm
multiply = pickle.loads(base64.b64decode("Y3RvcmNoCm1tCi4="))


class ModelNew(nn.Module):
    def forward(self, a, b):
        add(a[:1], b[:1], torch.empty_like(a[:1]))
        return multiply(a, b)
