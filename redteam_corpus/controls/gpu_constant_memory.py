"""Writes coefficients into constant memory before each launch.

mechanism: Copies from the host in every call, to memory that outlives it.
problem: gpu_chain
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

__constant__ float numbers[4];

__global__ void chain(const float* x, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = fmaxf(tanhf(x[i] * numbers[0] + numbers[1]) * numbers[2] - numbers[3], 0.0f);
}

extern "C" void run(const float* x, float* out, long count) {
    static const float values[4] = {1.5f, 0.25f, 2.0f, 0.125f};
    cudaMemcpyToSymbolAsync(numbers, values, sizeof values, 0, cudaMemcpyHostToDevice, 0);
    chain<<<1056, 256>>>(x, out, count);
}
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
