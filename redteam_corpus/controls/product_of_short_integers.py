"""Keeps the integers in 16 bits.

mechanism: The problem states integers up to 1000.
problem: product_of_stated_integers
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a.to(torch.int16).float() @ b
