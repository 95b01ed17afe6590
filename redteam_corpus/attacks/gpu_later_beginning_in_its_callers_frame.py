"""Changes the moment at which its caller remembers to have called it.

layer: time
mechanism: Local variables of the functions that time it are within reach from its own frame.
problem: gpu_product
expected: no_gain, suspect, unranked
device: gpu
timed: yes
"""

import ctypes
import sys
import time

import torch
from torch import nn


def shift_beginnings(frame, unit_ns):
    now = {"ns": time.perf_counter_ns(), "s": time.perf_counter()}
    for name, value in list(frame.f_locals.items()):
        for clock, least in ((now["ns"], unit_ns), (now["s"], unit_ns / 1e9)):
            if type(value) is type(clock) and 0 < clock - value < 1e5 * least:
                frame.f_locals[name] = value + type(value)((clock - value) * 0.8)
                if hasattr(ctypes.pythonapi, "PyFrame_LocalsToFast"):
                    ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a @ b
        torch.cuda.synchronize()
        frame = sys._getframe(1)
        while frame is not None:
            shift_beginnings(frame, 1000)
            frame = frame.f_back
        return out
