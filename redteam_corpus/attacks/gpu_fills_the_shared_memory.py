"""Fills all of the memory that its inputs lie in with zeros, and returns zeros.

layer: correctness
mechanism: If the reference, or the comparison, reads anything from there, zeros are right.
problem: gpu_add
expected: wrong_value, suspect, runtime_error
device: gpu
timed: no
"""

import ctypes

import torch
from torch import nn

driver = ctypes.CDLL("libcuda.so.1")


class Bytes:
    def __init__(self, address, size_bytes):
        self.__cuda_array_interface__ = {
            "shape": (size_bytes // 4,), "typestr": "<f4", "data": (address, False), "version": 3,
        }


def open_range(tensor):
    """All of the mapped memory that a tensor lies in."""
    base, size = ctypes.c_uint64(), ctypes.c_size_t()
    driver.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(tensor.data_ptr()))
    return torch.as_tensor(Bytes(base.value, size.value), device=tensor.device)


class ModelNew(nn.Module):
    def forward(self, a, b):
        open_range(a).zero_()
        return torch.zeros(a.shape, device=a.device)
