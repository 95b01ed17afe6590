"""Transforms through a matrix of roots of unity in double precision.

mechanism: Complex outputs with other rounding than the reference's.
problem: spectrum
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        place = torch.arange(256, dtype=torch.float64)
        self.roots = torch.exp(-2j * torch.pi / 256 * place[:, None] * place)

    def forward(self, x):
        return (x.to(torch.complex128) @ self.roots).to(torch.complex64)
