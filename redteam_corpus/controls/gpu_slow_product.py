"""Multiplies in a kernel that takes 50 ms.

mechanism: A kernel that is longer than a time slice of the device, and much slower than the baseline.
problem: gpu_product
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void multiply(const float* a, const float* b, float* out, int n) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += a[(long)row * n + k] * b[(long)k * n + column];
    out[(long)row * n + column] = sum;
}

extern "C" void run(const float* a, const float* b, float* out, int n) {
    multiply<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, b, out, n);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        library.run(*pointers, ctypes.c_int(a.shape[0]))
        return out
