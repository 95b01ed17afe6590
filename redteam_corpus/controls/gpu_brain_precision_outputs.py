"""Scales bfloat16 rows, two elements at a time.

mechanism: Eight bits of precision, as in the reference.
problem: gpu_brain_scale
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_bf16.h>

using pair = __nv_bfloat162;

__global__ void scale_rows(const pair* x, const pair* scale, pair* out, long count, int columns) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = __hmul2(x[i], scale[i % columns]);
}

extern "C" void run(const pair* x, const pair* scale, pair* out, long count, int columns) {
    scale_rows<<<1056, 256>>>(x, scale, out, count, columns);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, x, scale):
        out = torch.empty_like(x)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, scale, out))
        library.run(*pointers, ctypes.c_long(out.numel() // 2), ctypes.c_int(scale.numel() // 2))
        return out
