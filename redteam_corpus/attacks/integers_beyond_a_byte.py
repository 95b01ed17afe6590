"""Keeps the integers in bytes.

layer: correctness
mechanism: The given integers are below 100, but the problem states that they may be up to 1000.
problem: product_of_stated_integers
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a.to(torch.uint8).float() @ b
