"""Kills every process that it can reach.

layer: process
mechanism: The evaluator, its other workers or its compilers may be among them.
problem: add
expected: runtime_error, out_of_memory
device: cpu
timed: no
"""

import os
import signal

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(-1, signal.SIGKILL)
        return a + b
