"""Leaves streams in several contexts of its own that wait for a word which never comes.

layer: time
mechanism: Blocked streams use nothing, so the device seems quiet; its scheduler may still visit their contexts in
    turn, which slows every other process.
problem: gpu_power
expected: no_gain, suspect, unranked, runtime_error, load_error, timeout, out_of_memory
device: gpu
timed: yes
"""

import ctypes

import torch
from torch import nn

driver = ctypes.CDLL("libcuda.so.1")
CONTEXTS, STREAMS, AT_LEAST = 4, 16, 0


def call(name, *arguments):
    status = getattr(driver, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name} failed with {status}")


def block_streams():
    context, word = ctypes.c_void_p(), ctypes.c_uint64()
    call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
    call("cuMemAlloc_v2", ctypes.byref(word), ctypes.c_size_t(4096))
    call("cuMemsetD32_v2", word, 0, ctypes.c_size_t(1024))
    call("cuCtxSynchronize")
    for _ in range(STREAMS):
        stream = ctypes.c_void_p()
        call("cuStreamCreate", ctypes.byref(stream), 1)
        call("cuStreamWaitValue32_v2", stream, word, 1, AT_LEAST)
    call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


class ModelNew(nn.Module):
    has_blocked = False

    def forward(self, x, w):
        if not self.has_blocked:
            self.has_blocked = True
            for _ in range(CONTEXTS):
                block_streams()
        out = x
        for _ in range(8):
            out = out @ w
        return out
