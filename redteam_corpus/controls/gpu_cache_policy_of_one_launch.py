"""Asks that one input leaves the cache soon, for one launch only.

mechanism: Access policies are how lines are made to persist, and a flush of the cache is undone; here none persist.
problem: gpu_short_add
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
    cudaLaunchAttribute policy = {};
    policy.id = cudaLaunchAttributeAccessPolicyWindow;
    policy.val.accessPolicyWindow.base_ptr = (void*)a;
    policy.val.accessPolicyWindow.num_bytes = 1 << 23;
    policy.val.accessPolicyWindow.hitRatio = 1.0f;
    policy.val.accessPolicyWindow.hitProp = cudaAccessPropertyStreaming;
    policy.val.accessPolicyWindow.missProp = cudaAccessPropertyNormal;
    cudaLaunchConfig_t config = {};
    config.gridDim = 1056;
    config.blockDim = 256;
    config.attrs = &policy;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, add, a, b, out, count);
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
