"""Finds the maximum and the sum of a row in one pass, and writes it in a second one.

mechanism: Another order of operations than the reference's, one pass fewer.
problem: gpu_softmax
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void softmax(const float* x, float* out, int columns) {
    __shared__ float tops[256], sums[256];
    x += blockIdx.x * (long)columns;
    out += blockIdx.x * (long)columns;
    float top = -3.0e38f, sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        float next = fmaxf(top, x[i]);
        sum = sum * expf(top - next) + expf(x[i] - next);
        top = next;
    }
    tops[threadIdx.x] = top;
    sums[threadIdx.x] = sum;
    for (int step = 128; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) {
            float other = tops[threadIdx.x + step], next = fmaxf(tops[threadIdx.x], other);
            sums[threadIdx.x] *= expf(tops[threadIdx.x] - next);
            sums[threadIdx.x] += sums[threadIdx.x + step] * expf(other - next);
            tops[threadIdx.x] = next;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = expf(x[i] - tops[0]) / sums[0];
}

extern "C" void run(const float* x, float* out, int rows, int columns) { softmax<<<rows, 256>>>(x, out, columns); }
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        library.run(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), *map(ctypes.c_int, x.shape))
        return out
