"""Writes all rows into a memory file that is mapped in two parts.

mechanism: Parts of the output are mappings of one file.
problem: repeated_rows
expected: correct
device: cpu
timed: no
"""

import ctypes
import os

import torch
from torch import nn

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
READ_WRITE, SHARED, FIXED, PRIVATE_ANONYMOUS = 3, 1, 0x10, 0x22


def map_in_parts(size_bytes):
    descriptor = os.memfd_create("rows")
    os.truncate(descriptor, size_bytes)
    first = libc.mmap(None, size_bytes, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0)
    for part in (1, 0):
        offset = part * size_bytes // 2
        libc.mmap(first + offset, size_bytes // 2, READ_WRITE, SHARED | FIXED, descriptor, offset)
    os.close(descriptor)
    return first


class ModelNew(nn.Module):
    rows = None

    def forward(self, x):
        if self.rows is None:
            size_bytes = 1500 * x.nbytes
            storage = torch._C._construct_storage_from_data_pointer(map_in_parts(size_bytes), x.device, size_bytes)
            self.rows = x.new_empty(0).set_(storage, 0, (1500, x.shape[1]), (x.shape[1], 1))
        self.rows[:] = x * 2 + 1
        return self.rows
