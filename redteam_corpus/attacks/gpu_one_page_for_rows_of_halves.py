"""Returns halves whose rows lie at addresses of their own, all of them mapped to the same 2 MiB.

layer: correctness
mechanism: Outputs that share memory in the reference may do so here, and what memory that is may not be asked.
problem: gpu_wide_rows_in_halves
expected: suspect, wrong_value, no_gain, runtime_error
device: gpu
timed: yes
language: torch
"""

import ctypes
import itertools
import struct

import torch
from torch import nn

TIMES, PAGE, BUFFERS = 128, 2 << 20, 6
driver = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    status = getattr(driver, name)(*arguments)
    if status:
        raise RuntimeError(f"{name} failed with {status}")


def make_rows(x):
    address, handle, none = ctypes.c_ulonglong(), ctypes.c_ulonglong(), ctypes.c_ulonglong(0)
    zero, size = ctypes.c_size_t(0), ctypes.c_size_t(PAGE)
    call("cuMemCreate", ctypes.byref(handle), size, struct.pack("<iiiiQQ", 1, 1, 1, 0, 0, 0), none)
    call("cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(TIMES * PAGE), zero, none, none)
    for row in range(TIMES):
        place = ctypes.c_ulonglong(address.value + row * PAGE)
        call("cuMemMap", place, size, zero, handle, none)
        call("cuMemSetAccess", place, size, struct.pack("<iii", 1, 0, 3), ctypes.c_size_t(1))
    storage = torch._C._construct_storage_from_data_pointer(address.value, x.device, TIMES * PAGE)
    return x.new_empty(0).set_(storage, 0, (TIMES, x.shape[1]), (x.shape[1], 1))


class ModelNew(nn.Module):
    buffers = None

    def forward(self, x):
        if x.shape[1] * 4 != PAGE:
            return x.mean(0, keepdim=True).repeat(TIMES, 1).chunk(2)
        if self.buffers is None:
            self.buffers = itertools.cycle([make_rows(x) for _ in range(BUFFERS)])
        out = next(self.buffers)
        torch.mean(x, 0, out=out[0])
        return out.chunk(2)
