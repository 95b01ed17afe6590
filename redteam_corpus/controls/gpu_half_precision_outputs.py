"""Computes in float32, and reads and writes half precision.

mechanism: Its intermediate values are more exact than the reference's.
problem: gpu_half_gelu
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_fp16.h>

__global__ void gelu(const __half* x, __half* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        float value = __half2float(x[i]);
        out[i] = __float2half_rn(0.5f * value * (1.0f + erff(value * 0.70710678f)));
    }
}

extern "C" void run(const __half* x, __half* out, long count) { gelu<<<1056, 256>>>(x, out, count); }
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(*tensors, count=None):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors)
    library.run(*pointers, ctypes.c_long(tensors[-1].numel() if count is None else count))
    return tensors[-1]


class ModelNew(nn.Module):
    def forward(self, x):
        return run(x, torch.empty_like(x))
