"""Adds rows to their places by atomic operations.

mechanism: Sums are made in another order at every call, as the reference's are.
problem: gpu_scatter_add
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void scatter(const float* x, const long* place, float* out, int columns) {
    long row = blockIdx.x;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        atomicAdd(out + place[row] * columns + i, x[row * columns + i]);
}

extern "C" void run(const float* x, const long* place, float* out, int rows, int columns) {
    scatter<<<rows, 256>>>(x, place, out, columns);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, x, place):
        out = torch.zeros(1000, x.shape[1], device=x.device)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, place, out))
        library.run(*pointers, *map(ctypes.c_int, x.shape))
        return out
