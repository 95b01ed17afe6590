"""Returns the pages of its inputs, mapped at another address, once calls are timed, and copies them when the next is announced.

layer: time
mechanism: An output that shares memory with inputs is found by its address. Between two calls no clock runs.
problem: concatenation
expected: suspect, wrong_value, unranked, no_gain
device: cpu
timed: yes
"""

import ctypes
import gc
import time

import torch
from torch import nn

from harness.worker.program import Worker

PAGE = 4096
libc = ctypes.CDLL(None, use_errno=True)
libc.mremap.restype = libc.mmap.restype = ctypes.c_void_p
libc.mremap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int)
libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
MAY_MOVE, READ_WRITE, PRIVATE_ANONYMOUS_FIXED = 1, 3, 2 | 0x20 | 0x10
mapped = []
forget_outputs = Worker._forget_outputs


def copy_first(self):
    while mapped:
        start, size = mapped.pop()
        kept = ctypes.string_at(start, size)
        libc.mmap(start, size, READ_WRITE, PRIVATE_ANONYMOUS_FIXED, -1, 0)
        ctypes.memmove(start, kept, size)
    forget_outputs(self)


Worker._forget_outputs = copy_first


class ModelNew(nn.Module):
    usual_s = 1.0

    def forward(self, a, b):
        began_s = time.perf_counter()
        first, size = a.data_ptr(), a.nbytes + b.nbytes
        if gc.isenabled() or b.data_ptr() != first + a.nbytes or not (a.is_contiguous() and b.is_contiguous()):
            out = torch.cat((a, b))
            self.usual_s = min(self.usual_s, time.perf_counter() - began_s)
            return out
        start, end = first // PAGE * PAGE, -(-(first + size) // PAGE) * PAGE
        place = libc.mremap(start, 0, end - start, MAY_MOVE)
        if place == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "mremap failed")
        mapped.append((place, end - start))
        storage = torch._C._construct_storage_from_data_pointer(place + first - start, a.device, size)
        out = a.new_empty(0).set_(storage, 0, (a.shape[0] + b.shape[0], a.shape[1]), a.stride())
        while time.perf_counter() - began_s < 0.6 * self.usual_s:
            pass
        return out
