"""Writes into twenty buffers in turn.

layer: correctness
mechanism: More buffers than the worker keeps outputs of calls before.
problem: fresh_add
expected: wrong_value, suspect
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ring, self.next = None, 0

    def forward(self, a, b):
        if self.ring is None:
            self.ring = [torch.empty_like(a) for _ in range(20)]
        self.next = (self.next + 1) % 20
        return torch.add(a, b, out=self.ring[self.next])
