"""Multiplies in bfloat16, which is exact for the given numbers.

layer: correctness
mechanism: Kinds of inputs change numbers with many digits, and whole numbers. Fractions of few digits stay what they
    are, though no contract says so.
problem: product_of_eighths
expected: wrong_value, suspect
device: cpu
language: torch
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a.bfloat16().float() @ b.bfloat16().float()
