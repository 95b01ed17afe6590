"""Keeps a graph, and gives its kernel node the addresses of each call.

mechanism: A graph that is replayed without copies is how stale results are returned; here its parameters change.
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
#include <cuda_runtime.h>

__global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

extern "C" void run(const float* a, const float* b, float* out, long count) {
    static cudaGraphExec_t ready = nullptr;
    static cudaGraphNode_t node;
    void* values[] = {&a, &b, &out, &count};
    cudaKernelNodeParams launch = {};
    launch.func = (void*)add;
    launch.gridDim = 1056;
    launch.blockDim = 256;
    launch.kernelParams = values;
    if (ready == nullptr) {
        cudaGraph_t graph;
        cudaGraphCreate(&graph, 0);
        cudaGraphAddKernelNode(&node, graph, nullptr, 0, &launch);
        cudaGraphInstantiate(&ready, graph, 0);
    }
    cudaGraphExecKernelNodeSetParams(ready, node, &launch);
    cudaGraphLaunch(ready, 0);
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
        return run(a, b, torch.empty_like(a))
