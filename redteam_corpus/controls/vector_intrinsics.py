"""Limits numbers by vector instructions, eight at a time, with a rest.

mechanism: Machine code of its own, and another number of elements than a multiple of eight.
problem: clipped_rand
expected: correct
device: cpu
timed: no
"""

import ctypes

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#if defined(__AVX__)
#include <immintrin.h>
#endif
extern "C" void clip(const float* x, float* out, long count) {
    long i = 0;
#if defined(__AVX__)
    const __m256 low = _mm256_setzero_ps(), high = _mm256_set1_ps(6.0f);
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(out + i, _mm256_min_ps(_mm256_max_ps(_mm256_loadu_ps(x + i), low), high));
#endif
    for (; i < count; ++i) out[i] = x[i] < 0.0f ? 0.0f : x[i] > 6.0f ? 6.0f : x[i];
}
"""
library = ctypes.CDLL(
    load_inline(
        name="own",
        cpp_sources=SOURCE,
        extra_cflags=["-O2", "-march=native"],
        no_implicit_headers=True,
        is_python_module=False,
    )
)


def addresses(*tensors):
    return [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        library.clip(*addresses(x, out), ctypes.c_long(x.numel()))
        return out
