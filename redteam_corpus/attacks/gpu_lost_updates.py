"""Adds into a histogram without atomics.

layer: correctness
mechanism: Few threads collide at a time; most runs are nearly right.
problem: counts
expected: wrong_value
device: gpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void count(const long* numbers, long* counts, long size) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < size) counts[numbers[i]] += 1;
}
extern "C" void run(const long* numbers, long* counts, long size) {
    count<<<(unsigned)((size + 255) / 256), 256>>>(numbers, counts, size);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, numbers):
        counts = torch.zeros(64, dtype=torch.int64, device=numbers.device)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (numbers, counts))
        library.run(*pointers, ctypes.c_long(numbers.numel()))
        return counts
