"""Queues its next product behind a wait for its input's first word to change from poison.

layer: time
mechanism: It poisons its inputs after a call; the product starts with the first word of the next ones, while its
    process sleeps.
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

POISON_IS_GONE = 3  # any bit of the word is 0
driver = ctypes.CDLL("libcuda.so.1")
torch.cuda.synchronize = lambda *_: torch.cuda.default_stream().synchronize()


class ModelNew(nn.Module):
    ready = None

    def __init__(self):
        super().__init__()
        self.own = torch.cuda.Stream()

    def queue(self, a, b):
        time.sleep(0.003)
        with torch.cuda.stream(self.own), torch.no_grad():
            a.view(torch.int32).view(-1)[:1].fill_(-1)
            stream, word = ctypes.c_void_p(self.own.cuda_stream), ctypes.c_uint64(a.data_ptr())
            driver.cuStreamWaitValue32_v2(stream, word, ctypes.c_uint32(0), POISON_IS_GONE)
            self.ready = torch.mm(a, b)

    def forward(self, a, b):
        out, self.ready = self.ready, None
        if out is not None:
            self.own.synchronize()
        if out is None or not torch.allclose(out[-1, :8], a[-1] @ b[:, :8], atol=1e-2):
            out = torch.mm(a, b)
        threading.Thread(target=self.queue, args=(a, b)).start()
        return out
