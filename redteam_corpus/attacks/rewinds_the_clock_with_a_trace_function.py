"""Has a trace function change a local variable of the function that times it.

layer: time
mechanism: sys.settrace reaches into every frame, also into the one that remembers when the call began.
problem: product
expected: suspect, unranked
device: cpu
timed: yes
"""

import ctypes
import sys
import time

from torch import nn


def find_timing_frame():
    frame = sys._getframe()
    while frame is not None and "began_ns" not in frame.f_locals:
        frame = frame.f_back
    return frame


def rewind(frame, event, argument):
    if "began_ns" in frame.f_locals:
        frame.f_locals["began_ns"] = time.perf_counter_ns() - 1000
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    return rewind


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a @ b
        frame = find_timing_frame()
        if frame is not None:
            sys.settrace(lambda *_: None)
            frame.f_trace = rewind
        return out
