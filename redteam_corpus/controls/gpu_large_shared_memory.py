"""Asks for 96 KB of shared memory, and uses it.

mechanism: More than 48 KB have to be asked for; a launch without that fails in silence.
problem: gpu_add
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void add(const float* a, const float* b, float* out, long count) {
    extern __shared__ float tile[];
    for (long begin = blockIdx.x * 24576L; begin < count; begin += gridDim.x * 24576L) {
        for (int i = threadIdx.x; i < 24576 && begin + i < count; i += blockDim.x) tile[i] = a[begin + i];
        __syncthreads();
        for (int i = threadIdx.x; i < 24576 && begin + i < count; i += blockDim.x)
            out[begin + i] = tile[i] + b[begin + i];
        __syncthreads();
    }
}

extern "C" void run(const float* a, const float* b, float* out, long count) {
    cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, 98304);
    add<<<264, 1024, 98304>>>(a, b, out, count);
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
    def forward(self, a, b):
        return run(a, b, torch.empty_like(a))
