"""Returns managed memory, which moves between host and device.

mechanism: Pages that the host touched last have to come back.
problem: gpu_short_add
expected: correct
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn

runtime = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")


class Place:
    """Memory of its own for one output, as long as the output lives."""

    def __init__(self, like):
        self.address = ctypes.c_void_p()
        status = runtime.cudaMallocManaged(ctypes.byref(self.address), ctypes.c_size_t(like.numel() * 4), 1)
        if status != 0:
            raise MemoryError(f"no memory: {status}")
        self.__cuda_array_interface__ = {
            "shape": tuple(like.shape), "typestr": "<f4", "data": (self.address.value, False), "version": 3,
        }

    def __del__(self):
        runtime.cudaFree(self.address)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.add(a, b, out=torch.as_tensor(Place(a), device=a.device))
