"""Splits a product along its inner dimension: one kernel for the parts, one for their sums.

mechanism: Sums in another order, and a workspace as large as four outputs.
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
__global__ void multiply_part(const float* a, const float* b, float* parts, int n) {
    __shared__ float left[32][32], right[32][32];
    int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int k = blockIdx.z * n / 4; k < (blockIdx.z + 1) * n / 4; k += 32) {
        left[threadIdx.y][threadIdx.x] = a[(long)row * n + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(long)(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int i = 0; i < 32; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    parts[blockIdx.z * (long)n * n + (long)row * n + column] = sum;
}

__global__ void add_parts(const float* parts, float* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x)
        out[i] = (parts[i] + parts[count + i]) + (parts[2 * count + i] + parts[3 * count + i]);
}

extern "C" void run(const float* a, const float* b, float* parts, float* out, int n) {
    multiply_part<<<dim3(n / 32, n / 32, 4), dim3(32, 32)>>>(a, b, parts, n);
    add_parts<<<1056, 256>>>(parts, out, (long)n * n);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out, parts = torch.empty_like(a), torch.empty(4, *a.shape, device=a.device)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, parts, out))
        library.run(*pointers, ctypes.c_int(a.shape[0]))
        return out
