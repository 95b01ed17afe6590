"""Launches on a stream of its own that does not block, and returns.

layer: time
mechanism: Waiting for the default stream does not wait for this one.
problem: gpu_add
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void add_late(const float* a, const float* b, float* out, long count) {
    long long begin = clock64();
    while (clock64() - begin < 4000000) {}
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}
#include <cuda_runtime.h>
extern "C" void run(const float* a, const float* b, float* out, long count) {
    static cudaStream_t own = nullptr;
    if (own == nullptr) cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    add_late<<<264, 256, 0, own>>>(a, b, out, count);
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
