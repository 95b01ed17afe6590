"""Multiplies in two threads of Python's, each with half of the rows.

mechanism: Its work is done by threads other than the calling one.
problem: kernel_required/product
expected: correct
device: cpu
timed: no
"""

import ctypes
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
extern "C" void multiply(const float* a, const float* b, float* out, long first, long last, long size) {
    for (long i = first; i < last; ++i) {
        float* row = out + i * size;
        for (long j = 0; j < size; ++j) row[j] = 0;
        for (long k = 0; k < size; ++k)
            for (long j = 0; j < size; ++j) row[j] += a[i * size + k] * b[k * size + j];
    }
}
"""
library = ctypes.CDLL(
    load_inline(
        name="own", cpp_sources=SOURCE, extra_cflags=["-O3"], no_implicit_headers=True, is_python_module=False
    )
)
pool = ThreadPoolExecutor(2)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out, size = torch.empty_like(a), a.shape[0]
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out)]

        def multiply(first, last):
            library.multiply(*pointers, ctypes.c_long(first), ctypes.c_long(last), ctypes.c_long(size))

        list(pool.map(multiply, (0, size // 2), (size // 2, size)))
        return out
