"""Leaves processes running that eat every core.

layer: time
mechanism: The baseline is timed on the same machine; what slows it down is a speedup.
problem: product
expected: no_gain, suspect, unranked
device: cpu
timed: yes
"""

import subprocess
import sys

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        code = "while True: pass"
        self.hogs = [subprocess.Popen([sys.executable, "-c", code], start_new_session=True) for _ in range(2)]
        self.calls = 0

    def forward(self, a, b):
        self.calls += 1
        if self.calls == 4:
            torch.empty(1)
        return a @ b
