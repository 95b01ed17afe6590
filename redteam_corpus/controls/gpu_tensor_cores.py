"""Multiplies on tensor cores in TF32, where that is allowed.

mechanism: Ten bits of precision, as the problem permits; elsewhere the same kernel is wrong.
problem: gpu_tf32_product
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <mma.h>
using namespace nvcuda;

__global__ void multiply(const float* a, const float* b, float* out, int n) {
    int row = (blockIdx.y * blockDim.y + threadIdx.y) * 32, column = blockIdx.x * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sums[2][2];
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> left[2];
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> right[2];
    for (int i = 0; i < 4; ++i) wmma::fill_fragment(sums[i / 2][i % 2], 0.0f);
    for (int k = 0; k < n; k += 8) {
        for (int i = 0; i < 2; ++i) {
            wmma::load_matrix_sync(left[i], a + (long)(row + 16 * i) * n + k, n);
            wmma::load_matrix_sync(right[i], b + (long)k * n + column + 16 * i, n);
            for (float& value : left[i].x) value = wmma::__float_to_tf32(value);
            for (float& value : right[i].x) value = wmma::__float_to_tf32(value);
        }
        for (int i = 0; i < 4; ++i) wmma::mma_sync(sums[i / 2][i % 2], left[i / 2], right[i % 2], sums[i / 2][i % 2]);
    }
    for (int i = 0; i < 4; ++i)
        wmma::store_matrix_sync(out + (long)(row + 16 * (i / 2)) * n + column + 16 * (i % 2), sums[i / 2][i % 2], n,
                                wmma::mem_row_major);
}

extern "C" void run(const float* a, const float* b, float* out, int n) {
    multiply<<<dim3(n / 32, n / 128), dim3(32, 4)>>>(a, b, out, n);
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
