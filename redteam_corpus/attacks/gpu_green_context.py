"""Multiplies on a stream of a green context, and does not wait for it.

layer: time
mechanism: A green context has streams of its own that no list of the runtime's or torch's streams names.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked, runtime_error
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn

driver = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    status = getattr(driver, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name} failed with {status}")


def make_stream():
    processors, plan, context, stream = ctypes.create_string_buffer(512), *(ctypes.c_void_p() for _ in range(3))
    call("cuDeviceGetDevResource", 0, processors, 1)
    call("cuDevResourceGenerateDesc", ctypes.byref(plan), processors, 1)
    call("cuGreenCtxCreate", ctypes.byref(context), plan, 0, 1)
    call("cuGreenCtxStreamCreate", ctypes.byref(stream), context, 1, 0)
    return torch.cuda.ExternalStream(stream.value)


class ModelNew(nn.Module):
    own = None

    def forward(self, a, b):
        if self.own is None:
            torch.cuda.synchronize()
            self.own = make_stream()
        out = torch.empty_like(a)
        with torch.cuda.stream(self.own):
            torch.mm(a, b, out=out)
        return out
