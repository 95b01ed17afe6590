"""Sums by a template of CUB's in its own library.

mechanism: The kernel's name is the vendor's, and its code is built with the candidate.
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
#include <cub/device/device_reduce.cuh>

extern "C" void run(const float* x, void* workspace, float* out, long count) {
    size_t size = 1 << 20;
    cub::DeviceReduce::Sum(workspace, size, x, out, count);
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
        self.workspace = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")

    def forward(self, x):
        return run(x, self.workspace, torch.empty((), device=x.device), count=x.numel())
