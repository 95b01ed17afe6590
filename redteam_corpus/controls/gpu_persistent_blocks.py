"""Launches as many blocks as there are processors, which take tiles from a counter until none is left.

mechanism: Kernels that stay on the device are how work is begun before a call; this one ends with its last tile.
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
__global__ void add_tiles(int* next, const float* a, const float* b, float* out, long count) {
    __shared__ long begin;
    while (true) {
        if (threadIdx.x == 0) begin = atomicAdd(next, 1) * 8192L;
        __syncthreads();
        if (begin >= count) return;
        for (long i = begin + threadIdx.x; i < begin + 8192 && i < count; i += blockDim.x) out[i] = a[i] + b[i];
        __syncthreads();
    }
}

extern "C" void run(int* next, const float* a, const float* b, float* out, long count) {
    add_tiles<<<264, 512>>>(next, a, b, out, count);
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
    def __init__(self):
        super().__init__()
        self.next = torch.zeros(1, dtype=torch.int32, device="cuda")

    def forward(self, a, b):
        self.next.zero_()
        return run(self.next, a, b, torch.empty_like(a))
