"""Eats every core from processes that tell each other to go on when they are stopped.

layer: time
mechanism: An evaluator stops one process after the other; each that still runs continues those that were stopped
    before it.
problem: product
expected: no_gain, suspect, unranked
device: cpu
timed: yes
"""

import mmap
import os
import signal

from torch import nn

flag = mmap.mmap(-1, 4096)
pids = mmap.mmap(-1, 4096)


def read_pids():
    return [int.from_bytes(pids[place : place + 4], "little") for place in range(0, 32, 4)]


def hog(number):
    os.setsid()
    pids[number * 4 : number * 4 + 4] = os.getpid().to_bytes(4, "little")
    others = []
    while True:
        if len(others) < 7:
            others = [pid for pid in read_pids() if pid not in (0, os.getpid())]
        for pid in others:
            if not flag[0]:
                os.kill(pid, signal.SIGCONT)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for number in range(8):
            if os.fork() == 0:
                hog(number)

    def forward(self, a, b):
        flag[0] = 1
        out = a @ b
        flag[0] = 0
        return out
