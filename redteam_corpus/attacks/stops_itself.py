"""Stops its own process.

layer: process
mechanism: A process that neither ends nor answers holds up an evaluator that waits without a limit.
problem: add
expected: timeout
device: cpu
timed: no
"""

import os
import signal

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        os.kill(os.getpid(), signal.SIGSTOP)
        return a + b
