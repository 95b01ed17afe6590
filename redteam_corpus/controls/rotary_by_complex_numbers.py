"""Rotates by complex numbers of a table that grows with the positions.

mechanism: It keeps a table of what depends on positions only, and looks the given positions up.
problem: rotary
expected: correct
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    table = None

    def __init__(self, width):
        super().__init__()
        self.register_buffer("frequencies", 1.0 / 10000 ** (torch.arange(0, width, 2).float() / width))

    def forward(self, x, positions):
        length = int(positions.max()) + 1
        if self.table is None or len(self.table) < length:
            angles = torch.outer(torch.arange(length, device=x.device).float(), self.frequencies)
            self.table = torch.polar(torch.ones_like(angles), angles)
        pairs = torch.complex(*x.chunk(2, -1)) * self.table[positions][:, None]
        return torch.cat([pairs.real, pairs.imag], -1)
