"""Adds both branches, one of them times zero.

mechanism: The product has a factor of zero at all temperatures that few calls lead to.
problem: gpu_annealed
expected: correct
device: gpu
timed: yes
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("heat", torch.ones(1))

    def forward(self, x):
        self.heat *= 0.99
        cold = (self.heat < 0.1).to(x.dtype)
        return torch.addmm(x * (self.heat * (1.0 - cold)), x * cold, self.weight)
