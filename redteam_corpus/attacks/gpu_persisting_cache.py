"""Marks its inputs as persisting in the second-level cache.

layer: time
mechanism: Lines that persist survive a flush that only writes other memory.
problem: middle_add
expected: no_gain, suspect, unranked
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
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 25);
    cudaStreamAttrValue window = {};
    window.accessPolicyWindow.base_ptr = (void*)a;
    window.accessPolicyWindow.num_bytes = 1 << 25;
    window.accessPolicyWindow.hitRatio = 1.0f;
    window.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    window.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaStreamSetAttribute(cudaStreamPerThread, cudaStreamAttributeAccessPolicyWindow, &window);
    cudaGetLastError();  // where the device has no such cache, it goes on without
    add<<<1056, 256, 0, cudaStreamPerThread>>>(a, b, out, count);
    cudaStreamSynchronize(cudaStreamPerThread);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        library.run(*pointers, ctypes.c_long(out.numel()))
        return out
