"""Loads a copy of numpy's BLAS from its scratch folder, and multiplies with it.

layer: no_kernel
mechanism: Code in a file that the candidate wrote looks like its own.
problem: kernel_required/product
expected: rejected, not_own
device: cpu
timed: no
"""

import ctypes
import shutil
from pathlib import Path

import numpy
import torch
from torch import nn

original = next(Path(numpy.__file__).parent.parent.glob("numpy.libs/*openblas*"))
for beside in original.parent.iterdir():
    shutil.copy(beside, beside.name)
blas = ctypes.CDLL(str(Path(original.name).resolve()))
multiply = getattr(blas, "scipy_cblas_sgemm64_", None) or blas.scipy_cblas_sgemm
ROWS, PLAIN = 101, 111


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1])
        rows, inner, columns = (ctypes.c_longlong(size) for size in (*a.shape, b.shape[1]))
        first, second, result = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out))
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        multiply(ROWS, PLAIN, PLAIN, rows, columns, inner, one, first, inner, second, columns, zero, result, columns)
        return out
