"""Leaves the last per cent of its output alone.

layer: correctness
mechanism: A matched ratio of 99 % is enough for some checkers.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.zeros_like(a)
        done = a.numel() - a.numel() // 100
        torch.add(a.view(-1)[:done], b.view(-1)[:done], out=out.view(-1)[:done])
        return out
