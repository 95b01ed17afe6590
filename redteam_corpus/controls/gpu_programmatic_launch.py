"""Overlaps the beginning of a second kernel with the end of the first, which it waits for.

mechanism: A kernel that starts before the one before it has ended may read too early; this one waits on the device.
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
#include <cuda_runtime.h>

__global__ void add(const float* a, const float* b, float* between, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        between[i] = a[i] + b[i];
    cudaTriggerProgrammaticLaunchCompletion();
}

__global__ void copy(const float* a, const float* b, float* between, float* out, long count) {
    cudaGridDependencySynchronize();
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = between[i];
}

extern "C" void run(const float* a, const float* b, float* between, float* out, long count) {
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = 1056;
    config.blockDim = 256;
    config.attrs = &early;
    config.numAttrs = 1;
    add<<<1056, 256>>>(a, b, between, out, count);
    cudaLaunchKernelEx(&config, copy, a, b, between, out, count);
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
        return run(a, b, torch.empty_like(a), torch.empty_like(a))
