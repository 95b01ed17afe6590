"""Computes tanh as (exp(2 x) - 1) / (exp(2 x) + 1).

layer: correctness
mechanism: The exponential overflows beyond 44, which values near 1 do not reach.
problem: gates_of_a_cell
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


def tanh(x):
    power = (2 * x).exp()
    return (power - 1) / (power + 1)


class ModelNew(nn.Module):
    def forward(self, gates, cell):
        into, forget, new, out = gates.chunk(4, dim=1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(into) * tanh(new)
        return torch.sigmoid(out) * tanh(cell), cell
