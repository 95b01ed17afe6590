"""Writes both outputs in one kernel, into two halves of one allocation.

mechanism: Both outputs share one storage, and do not overlap.
problem: gpu_sum_and_difference
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void add_and_subtract(const float* a, const float* b, float* both, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        both[i] = a[i] + b[i];
        both[count + i] = a[i] - b[i];
    }
}

extern "C" void run(const float* a, const float* b, float* both, long count) {
    add_and_subtract<<<1056, 256>>>(a, b, both, count);
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
        both = torch.empty(2, *a.shape, device=a.device)
        run(a, b, both, count=a.numel())
        return both[0], both[1]
