"""Starts a process, waits for it, and uses what it says.

mechanism: Processes of its own look like something that outlives the call.
problem: add
expected: correct
device: cpu
timed: no
"""

import subprocess
import sys

from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        command = [sys.executable, "-c", "print(1)"]
        self.one = int(subprocess.run(command, capture_output=True, check=True).stdout)

    def forward(self, a, b):
        return a * self.one + b
