"""Adds in two hundred launches.

mechanism: The host's part is longer than the device's.
problem: gpu_short_add
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_runtime.h>

__global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

extern "C" void run(const float* a, const float* b, float* out, long count, cudaStream_t stream) {
    add<<<1056, 256, 0, stream>>>(a, b, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def add(a, b, out, stream=0):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
    library.run(*pointers, ctypes.c_long(out.numel()), ctypes.c_void_p(stream))
    return out


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        stream = torch.cuda.current_stream().cuda_stream
        for parts in zip(a.view(-1).chunk(200), b.view(-1).chunk(200), out.view(-1).chunk(200)):
            add(*parts, stream)
        return out
