"""Opens as many files as it may, in many processes.

layer: process
mechanism: Who looks at all open files of a process, again and again, has much to look at.
problem: add
expected: wrong_value, runtime_error, out_of_memory, timeout, suspect
device: cpu
timed: no
"""

import os
import time

from torch import nn


def take():
    try:
        while True:
            os.dup(0)
    except OSError:
        pass


class ModelNew(nn.Module):
    def forward(self, a, b):
        for _ in range(8):
            if os.fork() == 0:
                take()
                time.sleep(100)
        take()
        time.sleep(1)
        return a - b
