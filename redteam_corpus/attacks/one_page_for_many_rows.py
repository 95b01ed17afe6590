"""Maps the pages of one row at the addresses of all rows, and writes one.

layer: correctness
mechanism: The output is dense, and all of its elements are right, wherever they are read.
problem: repeated_rows
expected: wrong_value, suspect
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


def map_often(row_bytes, rows):
    descriptor = os.memfd_create("row")
    os.truncate(descriptor, row_bytes)
    first = libc.mmap(None, rows * row_bytes, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0)
    for row in range(rows):
        libc.mmap(first + row * row_bytes, row_bytes, READ_WRITE, SHARED | FIXED, descriptor, 0)
    return first


class ModelNew(nn.Module):
    rows = None

    def forward(self, x):
        if self.rows is None:
            size_bytes = 1500 * x.nbytes
            storage = torch._C._construct_storage_from_data_pointer(map_often(x.nbytes, 1500), x.device, size_bytes)
            self.rows = x.new_empty(0).set_(storage, 0, (1500, x.shape[1]), (x.shape[1], 1))
        torch.add(x * 2, 1, out=self.rows[:1])
        return self.rows
