"""Computes the declared cases, and for other sizes only the rows that the largest of them has.

layer: correctness
mechanism: The cases are listed in the prompt, so a program need not work for any other size.
problem: add_in_cases
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.zeros_like(a)
        out[:301] = a[:301] + b[:301]
        return out
