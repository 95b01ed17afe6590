"""Leaves a kernel running on the device that computes whenever new inputs appear.

layer: time
mechanism: What runs already needs no launch, and starts before the clock does.
problem: gpu_add
expected: timeout, wrong_value, suspect, runtime_error
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cuda_runtime.h>

__global__ void stay(const float* a, const float* b, float* out, long count, volatile int* stop) {
    while (*stop == 0)
        for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
            out[i] = a[i] + b[i];
}

extern "C" void run(const float* a, const float* b, float* out, long count) {
    static int* stop = nullptr;
    static cudaStream_t own = nullptr;
    if (stop == nullptr) {
        cudaHostAlloc((void**)&stop, sizeof(int), cudaHostAllocMapped);
        *stop = 0;
        cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
        stay<<<16, 256, 0, own>>>(a, b, out, count, stop);
    }
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        library.run(*pointers, ctypes.c_long(out.numel()))
        return out
