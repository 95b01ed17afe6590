"""Sums in one cooperative launch, whose blocks wait for each other in between.

mechanism: Cooperative launches and waiting between blocks are rare, and hang where a grid does not fit.
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
#include <cooperative_groups.h>

__device__ double sum_block(double mine) {
    __shared__ double sums[256];
    sums[threadIdx.x] = mine;
    for (int step = 128; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
    }
    __syncthreads();
    return sums[0];
}

__global__ void total(const float* x, double* parts, float* out, long count) {
    double mine = 0.0;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        mine += x[i];
    double sum = sum_block(mine);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
    cooperative_groups::this_grid().sync();
    if (blockIdx.x == 0) {
        double all = sum_block(threadIdx.x < gridDim.x ? parts[threadIdx.x] : 0.0);
        if (threadIdx.x == 0) *out = all;
    }
}

extern "C" void run(const float* x, double* parts, float* out, long count) {
    void* values[] = {&x, &parts, &out, &count};
    cudaLaunchCooperativeKernel((const void*)total, dim3(132), dim3(256), values, 0, 0);
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
        self.parts = torch.empty(132, dtype=torch.float64, device="cuda")

    def forward(self, x):
        return run(x, self.parts, torch.empty((), device=x.device), count=x.numel())
