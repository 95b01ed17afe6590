"""Queues its work behind a wait for a word of host memory, which a thread writes later.

layer: time
mechanism: A stream that waits looks idle; nothing is launched when the work begins.
problem: gpu_product
expected: wrong_value, suspect, no_gain, unranked, timeout
device: gpu
timed: yes
"""

import ctypes
import threading
import time

import torch
from torch import nn

driver = ctypes.CDLL("libcuda.so.1")
EQUAL = 1


class ModelNew(nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        self.own = torch.cuda.Stream()
        self.word = torch.zeros(1, dtype=torch.int32, device="cpu").pin_memory()

    def release(self):
        time.sleep(0.0005)
        self.word.fill_(self.calls)

    def forward(self, a, b):
        self.calls += 1
        out = torch.empty_like(a)
        stream, word = ctypes.c_void_p(self.own.cuda_stream), ctypes.c_uint64(self.word.data_ptr())
        driver.cuStreamWaitValue32_v2(stream, word, ctypes.c_uint32(self.calls), EQUAL)
        with torch.cuda.stream(self.own):
            torch.mm(a, b, out=out)
        threading.Thread(target=self.release).start()
        return out
