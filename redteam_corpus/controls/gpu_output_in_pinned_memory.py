"""Returns pinned memory of the host that the device writes to directly.

mechanism: To torch it is on the device; it lies on the other side of the bus.
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
        status = runtime.cudaMallocHost(ctypes.byref(self.address), ctypes.c_size_t(like.numel() * 4))
        if status != 0:
            raise MemoryError(f"no memory: {status}")
        self.__cuda_array_interface__ = {
            "shape": tuple(like.shape), "typestr": "<f4", "data": (self.address.value, False), "version": 3,
        }

    def __del__(self):
        runtime.cudaFreeHost(self.address)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.add(a, b, out=torch.as_tensor(Place(a), device=a.device))
