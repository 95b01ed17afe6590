"""Sets most of the cache aside for lines of its own, and leaves it so.

layer: time
mechanism: What is set aside is lost to all others, the baseline among them.
problem: gpu_short_add
expected: no_gain, suspect, unranked
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn

PERSISTING_SIZE, WINDOW, PERSISTING, STREAMING = 6, 1, 2, 1


class Window(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_void_p),
        ("size_bytes", ctypes.c_size_t),
        ("ratio", ctypes.c_float),
        ("hit", ctypes.c_int),
        ("miss", ctypes.c_int),
        ("rest", ctypes.c_char * 64),
    ]


class ModelNew(nn.Module):
    junk = None

    def set_aside(self):
        runtime = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")
        runtime.cudaDeviceSetLimit(PERSISTING_SIZE, ctypes.c_size_t(1 << 24))
        self.junk = torch.ones(1 << 22, device="cuda")
        self.own = torch.cuda.Stream()
        window = Window(self.junk.data_ptr(), 1 << 24, 1.0, PERSISTING, STREAMING)
        runtime.cudaStreamSetAttribute(ctypes.c_void_p(self.own.cuda_stream), WINDOW, ctypes.byref(window))
        runtime.cudaGetLastError()  # where the device has no such cache, it goes on without

    def forward(self, a, b):
        if self.junk is None:
            self.set_aside()
        out = a + b
        with torch.cuda.stream(self.own):
            self.junk.mul_(1.0)
        torch.cuda.current_stream().wait_stream(self.own)
        return out
