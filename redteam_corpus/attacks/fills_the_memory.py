"""Holds as much memory as it gets, touched page by page.

layer: time
mechanism: A baseline on a machine without free memory is slow, or does not run at all.
problem: product
expected: no_gain, suspect, unranked, out_of_memory, runtime_error, timeout
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.held = []
        try:
            while len(self.held) < 12:
                self.held.append(torch.ones(1 << 26))
        except (RuntimeError, MemoryError):
            self.held = self.held[:-2]

    def forward(self, a, b):
        return a @ b
