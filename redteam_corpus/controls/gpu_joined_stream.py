"""Launches on a stream of its own, and has the default stream wait for it.

mechanism: A stream of its own is how work is hidden; here it is joined with an event.
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

__global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

extern "C" void run(const float* a, const float* b, float* out, long count) {
    static cudaStream_t own = nullptr;
    static cudaEvent_t before, after;
    if (own == nullptr) {
        cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&before, cudaEventDisableTiming);
        cudaEventCreateWithFlags(&after, cudaEventDisableTiming);
    }
    cudaEventRecord(before, 0);
    cudaStreamWaitEvent(own, before, 0);
    add<<<1056, 256, 0, own>>>(a, b, out, count);
    cudaEventRecord(after, own);
    cudaStreamWaitEvent(0, after, 0);
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
