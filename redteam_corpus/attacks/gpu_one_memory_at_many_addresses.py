"""Returns the same memory at every call, mapped at another address each time.

layer: time
mechanism: No memory is taken in the call, and addresses of outputs never tell that the last one was overwritten.
problem: gpu_add
expected: wrong_value, suspect, no_gain, unranked, runtime_error
device: gpu
timed: yes
"""

import ctypes
import struct

import torch
from torch import nn

ADDRESSES, GRANULARITY = 16, 1 << 21
driver = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    status = getattr(driver, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name} failed with {status}")


class Place:
    def __init__(self, address, like):
        self.__cuda_array_interface__ = {
            "shape": tuple(like.shape), "typestr": "<f4", "data": (address, False), "version": 3,
        }


def map_often(size_bytes):
    size = ctypes.c_size_t(-(-size_bytes // GRANULARITY) * GRANULARITY)
    handle, none = ctypes.c_uint64(), ctypes.c_uint64(0)
    call("cuMemCreate", ctypes.byref(handle), size, struct.pack("<iiiiQQ", 1, 0, 1, 0, 0, 0), none)
    for _ in range(ADDRESSES):
        address = ctypes.c_uint64()
        call("cuMemAddressReserve", ctypes.byref(address), size, ctypes.c_size_t(0), none, none)
        call("cuMemMap", address, size, ctypes.c_size_t(0), handle, none)
        call("cuMemSetAccess", address, size, struct.pack("<iii", 1, 0, 3), ctypes.c_size_t(1))
        yield address.value


class ModelNew(nn.Module):
    calls = 0

    def forward(self, a, b):
        if self.calls == 0:
            self.addresses = list(map_often(a.numel() * 4))
        self.calls += 1
        place = Place(self.addresses[self.calls % ADDRESSES], a)
        return torch.add(a, b, out=torch.as_tensor(place, device=a.device))
