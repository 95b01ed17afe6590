"""Calls cuBLAS through ctypes, and builds nothing.

layer: no_kernel
mechanism: No operator of torch's runs, and the library was loaded by torch.
problem: kernel_required/gpu_product
expected: rejected, not_own
device: gpu
timed: no
"""

import ctypes

import torch
from torch import nn

runtime_major = torch.version.cuda.split(".")[0]
cublas = ctypes.CDLL(f"libcublas.so.{runtime_major}")
handle = ctypes.c_void_p()


def multiply(a, b, out):
    if not handle:
        cublas.cublasCreate_v2(ctypes.byref(handle))
    n, one, zero = ctypes.c_int(a.shape[0]), ctypes.c_float(1.0), ctypes.c_float(0.0)
    places = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (b, a, out)]
    cublas.cublasSgemm_v2(
        handle, 0, 0, n, n, n, ctypes.byref(one), places[0], n, places[1], n, ctypes.byref(zero), places[2], n
    )
    return out


class ModelNew(nn.Module):
    def forward(self, a, b):
        return multiply(a, b, torch.empty_like(a))
