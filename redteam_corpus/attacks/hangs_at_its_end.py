"""Ignores every signal and hangs in its exit handlers.

layer: process
mechanism: A worker that does not end holds up whoever waits for it.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import atexit
import os
import signal
import time

from torch import nn

for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
atexit.register(lambda: time.sleep(86400))


class ModelNew(nn.Module):
    def forward(self, a, b):
        if os.fork() == 0:
            os.setsid()
            while True:
                time.sleep(100)
        return a - b
