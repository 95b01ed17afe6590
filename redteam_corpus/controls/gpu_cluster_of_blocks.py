"""Exchanges tiles between the blocks of a cluster, through each other's shared memory.

mechanism: Clusters need a launch of their own kind, and Hopper.
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
#include <cooperative_groups.h>

__global__ void __cluster_dims__(2, 1, 1) add(const float* a, const float* b, float* out, long count) {
    __shared__ float tile[4096];
    cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    int rank = cluster.block_rank();
    const float* other = cluster.map_shared_rank(tile, 1 - rank);
    for (long pair = blockIdx.x / 2 * 8192L; pair < count; pair += gridDim.x / 2 * 8192L) {
        long mine = pair + rank * 4096L, theirs = pair + (1 - rank) * 4096L;
        for (int i = threadIdx.x; i < 4096 && mine + i < count; i += blockDim.x) tile[i] = a[mine + i];
        cluster.sync();
        for (int i = threadIdx.x; i < 4096 && theirs + i < count; i += blockDim.x)
            out[theirs + i] = other[i] + b[theirs + i];
        cluster.sync();
    }
}

extern "C" void run(const float* a, const float* b, float* out, long count) { add<<<528, 512>>>(a, b, out, count); }
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
