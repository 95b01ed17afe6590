"""Leaves an empty context current, and puts the right one back from a timer's signal.

layer: time
mechanism: Waiting for the current context returns at once, for nothing was ever launched in it; no function is
    replaced.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked, runtime_error
device: gpu
timed: yes
"""

import ctypes
import signal

import torch
from torch import nn

driver = ctypes.CDLL("libcuda.so.1")
empty, usual = ctypes.c_void_p(), ctypes.c_void_p()


def put_back(*_):
    driver.cuCtxSetCurrent(usual)


signal.signal(signal.SIGALRM, put_back)


class ModelNew(nn.Module):
    def forward(self, a, b):
        if not usual:
            torch.ones(1, device=a.device)
            driver.cuCtxGetCurrent(ctypes.byref(usual))
            driver.cuCtxCreate_v2(ctypes.byref(empty), 0, 0)
        put_back()
        out = a @ b
        driver.cuCtxSetCurrent(empty)
        signal.setitimer(signal.ITIMER_REAL, 0.0003)
        return out
