"""Loads its tiles by asynchronous copies into shared memory, two stages deep.

mechanism: cp.async returns before the data are there.
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
#include <cuda_pipeline.h>

__global__ void add(const float* a, const float* b, float* out, long count) {
    __shared__ float left[2][1024], right[2][1024];
    long step = gridDim.x * 1024L, begin = blockIdx.x * 1024L;
    auto load = [&](long at, int stage) {
        if (at + threadIdx.x < count) {
            __pipeline_memcpy_async(&left[stage][threadIdx.x], a + at + threadIdx.x, 4);
            __pipeline_memcpy_async(&right[stage][threadIdx.x], b + at + threadIdx.x, 4);
        }
        __pipeline_commit();
    };
    int stage = 0;
    load(begin, stage);
    for (; begin < count; begin += step, stage ^= 1) {
        load(begin + step, stage ^ 1);
        __pipeline_wait_prior(1);
        if (begin + threadIdx.x < count)
            out[begin + threadIdx.x] = left[stage][threadIdx.x] + right[stage][threadIdx.x];
    }
}

extern "C" void run(const float* a, const float* b, float* out, long count) { add<<<264, 1024>>>(a, b, out, count); }
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
