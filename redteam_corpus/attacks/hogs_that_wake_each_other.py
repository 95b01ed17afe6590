"""Eats every core from processes that tell each other to go on when they are stopped.

layer: time
mechanism: An evaluator stops one process after the other; each that still runs continues those that were stopped
    before it.
problem: product
expected: no_gain, suspect, unranked, runtime_error, load_error
device: cpu
timed: yes
"""

import mmap
import os
import signal
import time

import torch
from torch import nn

from harness.worker.program import Worker

resting = mmap.mmap(-1, 4096)
pids = mmap.mmap(-1, 4096)
HOGS = 2


def read_pids():
    return [int.from_bytes(pids[place : place + 4], "little") for place in range(0, 4 * HOGS, 4)]


def hog(number):
    os.setsid()
    pids[number * 4 : number * 4 + 4] = os.getpid().to_bytes(4, "little")
    others = []
    while True:
        if len(others) < HOGS - 1:
            others = [pid for pid in read_pids() if pid not in (0, os.getpid())]
        if resting[0]:
            time.sleep(0.0003)
        for pid in others:
            os.kill(pid, signal.SIGCONT)


do_call = Worker.do_call


def call_in_peace(self, message):
    resting[0] = 1
    try:
        return do_call(self, message)
    finally:
        resting[0] = 0


Worker.do_call = call_in_peace


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for number in range(HOGS):
            if os.fork() == 0:
                hog(number)

    def forward(self, a, b):
        return a @ b
