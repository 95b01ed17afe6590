"""Frees the memory of its output before it returns.

layer: correctness
mechanism: What was freed is often still there for a moment.
problem: gpu_short_add
expected: runtime_error, wrong_value, suspect, load_error
device: gpu
timed: no
"""

import ctypes

import torch
from torch import nn


class Place:
    def __init__(self, address, like):
        self.__cuda_array_interface__ = {
            "shape": tuple(like.shape), "typestr": "<f4", "data": (address, False), "version": 3,
        }


class ModelNew(nn.Module):
    def forward(self, a, b):
        runtime = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")
        address = ctypes.c_void_p()
        runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(a.numel() * 4))
        out = torch.as_tensor(Place(address.value, a), device=a.device)
        torch.add(a, b, out=out)
        torch.cuda.synchronize()
        runtime.cudaFree(address)
        return out
