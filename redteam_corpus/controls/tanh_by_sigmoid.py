"""Computes tanh as 2 sigmoid(2 x) - 1.

mechanism: Digits are lost near zero, and no exponential overflows.
problem: gates_of_a_cell
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


def tanh(x):
    return 2 * torch.sigmoid(2 * x) - 1


class ModelNew(nn.Module):
    def forward(self, gates, cell):
        into, forget, new, out = gates.chunk(4, dim=1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(into) * tanh(new)
        return torch.sigmoid(out) * tanh(cell), cell
