"""Multiplies in a kernel of its own, in a suite that requires one.

mechanism: It is ten times slower than the library's, and all of the work is its own.
problem: kernel_required/gpu_product
expected: correct
device: gpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void multiply(const float* a, const float* b, float* out, int n) {
    __shared__ float left[32][32], right[32][32];
    int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 32) {
        left[threadIdx.y][threadIdx.x] = a[(long)row * n + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(long)(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int i = 0; i < 32; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    out[(long)row * n + column] = sum;
}

extern "C" void run(const float* a, const float* b, float* out, int n) {
    multiply<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(a, b, out, n);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def multiply(a, b, out):
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
    library.run(*pointers, ctypes.c_int(a.shape[0]))
    return out


class ModelNew(nn.Module):
    def forward(self, a, b):
        return multiply(a, b, torch.empty_like(a))
