"""Multiplies the first eighth of the terms in a kernel of its own, to which the library adds the others.

mechanism: What its kernel writes is a part of the result that the library overwrites; the result lies nowhere in memory
    without it.
problem: kernel_required/gpu_product
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void multiply(const float* a, const float* b, float* out, long inner, long width) {
    __shared__ float left[32][33], right[32][33];
    long row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    for (long at = 0; at < inner; at += 32) {
        left[threadIdx.y][threadIdx.x] = a[row * width + at + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(at + threadIdx.y) * width + column];
        __syncthreads();
        for (int i = 0; i < 32; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    out[row * width + column] = sum;
}

extern "C" void run(const float* a, const float* b, float* out, long inner, long width, long rows,
                    cudaStream_t stream) {
    multiply<<<dim3(width / 32, rows / 32), dim3(32, 32), 0, stream>>>(a, b, out, inner, width);
}
"""
library = ctypes.CDLL(
    load_inline(name="kernels", cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True, is_python_module=False)
)


def run(name, *values, stream=None):
    """Numbers are passed as long, tensors as pointers."""
    given = [ctypes.c_void_p(one.data_ptr()) if torch.is_tensor(one) else ctypes.c_long(one) for one in values]
    getattr(library, name)(*given, ctypes.c_void_p((stream or torch.cuda.current_stream()).cuda_stream))


class ModelNew(nn.Module):
    def forward(self, a, b):
        inner = a.shape[1] // 8
        out = torch.empty_like(a)
        run("run", a, b, out, inner, a.shape[1], a.shape[0])
        return torch.addmm(out, a[:, inner:], b[inner:], out=out)
