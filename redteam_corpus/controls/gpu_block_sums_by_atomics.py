"""Sums blocks, and adds their sums by atomic operations in any order.

mechanism: Its last bits differ from call to call.
problem: gpu_total
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void total(const float* x, float* out, long count) {
    float mine = 0.0f;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        mine += x[i];
    for (int step = 16; step > 0; step /= 2) mine += __shfl_down_sync(0xffffffff, mine, step);
    if (threadIdx.x % 32 == 0) atomicAdd(out, mine);
}

extern "C" void run(const float* x, float* out, long count) { total<<<1056, 256>>>(x, out, count); }
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
        return run(x, torch.zeros((), device=x.device), count=x.numel())
