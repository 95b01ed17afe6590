"""Has a kernel start before the one that it depends on has written its results.

layer: correctness
mechanism: Programmatic launches overlap the end of one kernel with the beginning of the next, which must wait and
    does not.
problem: gpu_add
expected: wrong_value, suspect
device: gpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_runtime.h>

__global__ void add(const float* a, const float* b, float* between, float* out, long count) {
    cudaTriggerProgrammaticLaunchCompletion();
    long long begin = clock64();
    while (clock64() - begin < 2000000) {}
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        between[i] = a[i] + b[i];
}

__global__ void copy(const float* a, const float* b, float* between, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = between[i];
}

extern "C" void run(const float* a, const float* b, float* between, float* out, long count) {
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = 132;
    config.blockDim = 256;
    config.attrs = &early;
    config.numAttrs = 1;
    add<<<132, 256>>>(a, b, between, out, count);
    cudaLaunchKernelEx(&config, copy, a, b, between, out, count);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out, between = torch.empty_like(a), torch.zeros_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, between, out))
        library.run(*pointers, ctypes.c_long(out.numel()))
        return out
