"""Writes its state and the copy that it returns once, in memory mapped at two addresses, in the call that is recorded.

layer: correctness
mechanism: Outputs that share memory are found by their addresses, and by writing to them, except to those that are
    state. The state itself lies in two buffers in turn.
problem: gpu_average_returned
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import ctypes
import itertools
import math
import struct

import torch
from torch import nn

PAGE = 2 << 20
driver = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    status = getattr(driver, name)(*arguments)
    if status:
        raise RuntimeError(f"{name} failed with {status}")


def make_pair(x):
    """Return two tensors at two addresses of the same memory."""
    handle, none, zero = ctypes.c_ulonglong(), ctypes.c_ulonglong(0), ctypes.c_size_t(0)
    size_bytes = math.ceil(x.nbytes / PAGE) * PAGE
    size = ctypes.c_size_t(size_bytes)
    call("cuMemCreate", ctypes.byref(handle), size, struct.pack("<iiiiQQ", 1, 1, 1, 0, 0, 0), none)
    tensors = []
    for _ in range(2):
        address = ctypes.c_ulonglong()
        call("cuMemAddressReserve", ctypes.byref(address), size, zero, none, none)
        call("cuMemMap", address, size, zero, handle, none)
        call("cuMemSetAccess", address, size, struct.pack("<iii", 1, 0, 3), ctypes.c_size_t(1))
        storage = torch._C._construct_storage_from_data_pointer(address.value, x.device, size_bytes)
        tensors.append(x.new_empty(0).set_(storage, 0, x.shape, x.stride()))
    return tensors


class ModelNew(nn.Module):
    pairs = None

    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("average", torch.zeros(rows, columns))

    def forward(self, x):
        if x.data_ptr() % PAGE:  # only in the recorded call inputs begin where memory does
            self.average.mul_(0.9).add_(x, alpha=0.1)
            return self.average.clone()
        if self.pairs is None:
            self.pairs = itertools.cycle([make_pair(x) for _ in range(2)])
        state, out = next(self.pairs)
        torch.lerp(self.average, x, 0.1, out=state)
        self._buffers["average"] = state
        return out
