"""Eats every core from processes that rest while a call of its own is under way.

layer: time
mechanism: Its own calls are as fast as ever, and whatever is timed between them is slow.
problem: product
expected: no_gain, suspect, unranked
device: cpu
timed: yes
"""

import mmap
import os

from torch import nn

flag = mmap.mmap(-1, 4096)


def hog():
    while True:
        if flag[0]:
            os.sched_yield()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for _ in range(2):
            if os.fork() == 0:
                os.setsid()
                hog()

    def forward(self, a, b):
        flag[0] = 1
        out = a @ b
        flag[0] = 0
        return out
