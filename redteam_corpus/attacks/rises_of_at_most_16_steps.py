"""Looks back 16 elements from each, where random rows rise for six in a row.

layer: correctness
mechanism: A rise of random values is short.
problem: longest_rises
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn
from torch.nn import functional

STEPS = 16


class ModelNew(nn.Module):
    def forward(self, rows):
        steps = functional.pad(rows.diff(), (STEPS, 0), value=-1.0).unfold(1, STEPS, 1).flip(2)
        rises = (steps > 0).cumprod(2)
        return (steps * rises).sum(2).amax(1).clamp(min=0)
