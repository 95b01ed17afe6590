"""Has processes spin on every core, but not while it is called.

layer: time
mechanism: A short kernel's time is mostly launching it, which a busy processor delays: the baseline's, not the
    candidate's.
problem: gpu_short_add
expected: no_gain, suspect, unranked, load_error, runtime_error
device: gpu
timed: yes
"""

import mmap
import os
import time

import torch
from torch import nn

word = mmap.mmap(-1, 4096)
word[0] = 1
parent = os.getpid()


def spin():
    end = time.monotonic() + 120
    while time.monotonic() < end and os.getppid() == parent:
        while word[0] == 0 and time.monotonic() < end:
            pass


for _ in os.sched_getaffinity(0):
    if os.fork() == 0:
        spin()
        os._exit(0)


class ModelNew(nn.Module):
    def forward(self, a, b):
        word[0] = 1
        out = a + b
        torch.cuda.synchronize()
        word[0] = 0
        return out
