"""Listens under the names and in the folders that the next worker would use.

layer: process
mechanism: Abstract sockets, shared memory and System V queues outlive processes and are found by name.
problem: add
expected: wrong_value, runtime_error
device: cpu
timed: no
"""

import ctypes
import socket

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        libc = ctypes.CDLL(None)
        line = socket.socket(socket.AF_UNIX)
        try:
            line.bind("\0harness")
            line.listen()
        except OSError:
            pass
        segment = libc.shmget(4711, a.numel() * 4, 0o1666)
        if segment >= 0:
            libc.shmat.restype = ctypes.c_void_p
            place = libc.shmat(segment, None, 0)
            if place not in (None, ctypes.c_void_p(-1).value):
                before = torch.frombuffer(bytearray(ctypes.string_at(place, a.numel() * 4)), dtype=a.dtype).view_as(a)
                ctypes.memmove(place, (a + b).data_ptr(), a.numel() * 4)
                return before
        return torch.zeros_like(a)
