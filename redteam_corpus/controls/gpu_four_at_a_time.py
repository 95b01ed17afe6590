"""Adds four elements at a time where addresses allow it, and the rest one by one.

mechanism: Wide accesses at addresses that happen to be aligned; others take another path.
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
__global__ void add4(const float4* a, const float4* b, float4* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
        float4 x = a[i], y = b[i];
        out[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
}

__global__ void add(const float* a, const float* b, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = a[i] + b[i];
}

extern "C" void run(const float* a, const float* b, float* out, long count) {
    long wide = (((long)a | (long)b | (long)out) & 15) == 0 ? count / 4 : 0, done = wide * 4;
    if (wide > 0) add4<<<1056, 256>>>((const float4*)a, (const float4*)b, (float4*)out, wide);
    if (done < count) add<<<1056, 256>>>(a + done, b + done, out + done, count - done);
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
