"""Computes attention with C and OpenMP, two passes over the keys of each row.

mechanism: Single precision in another order, and skipped keys after the diagonal.
problem: small_attention
expected: correct
device: cpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <math.h>
extern "C" void attend(const float* q, const float* k, const float* v, float* out, long batches, long rows, long size) {
    #pragma omp parallel for collapse(2)
    for (long batch = 0; batch < batches; ++batch)
        for (long row = 0; row < rows; ++row) {
            const long base = batch * rows * size;
            const float* mine = q + base + row * size;
            float* target = out + base + row * size;
            float scores[1024], top = -INFINITY, total = 0.0f;
            for (long key = 0; key <= row; ++key) {
                float sum = 0.0f;
                for (long i = 0; i < size; ++i) sum += mine[i] * k[base + key * size + i];
                scores[key] = sum / sqrtf(size);
                top = fmaxf(top, scores[key]);
            }
            for (long i = 0; i < size; ++i) target[i] = 0.0f;
            for (long key = 0; key <= row; ++key) {
                const float weight = expf(scores[key] - top);
                total += weight;
                for (long i = 0; i < size; ++i) target[i] += weight * v[base + key * size + i];
            }
            for (long i = 0; i < size; ++i) target[i] /= total;
        }
}
"""
library = ctypes.CDLL(
    load_inline(
        name="own",
        cpp_sources=SOURCE,
        extra_cflags=["-O3", "-ffast-math", "-fno-finite-math-only", "-fopenmp"],
        extra_ldflags=["-fopenmp"],
        no_implicit_headers=True,
        is_python_module=False,
    )
)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        tensors = [tensor.contiguous() for tensor in (q, k, v)]
        out = torch.empty_like(tensors[0])
        batches, rows, size = q.shape[0] * q.shape[1], q.shape[2], q.shape[3]
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (*tensors, out)]
        library.attend(*pointers, *map(ctypes.c_long, (batches, rows, size)))
        return out
