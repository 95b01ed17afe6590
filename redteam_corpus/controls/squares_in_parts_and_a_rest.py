"""Takes the mean of squares over parts of eight columns, and of the rest of a row.

mechanism: Other sums, and squares of values relative to the largest.
problem: root_mean_square
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        largest = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-30)
        scaled = x / largest
        whole = x.size(-1) // 8 * 8
        squares = scaled[:, :whole].square().unflatten(-1, (-1, 8)).sum(dim=1).sum(dim=-1, keepdim=True)
        squares = squares + scaled[:, whole:].square().sum(dim=-1, keepdim=True)
        return x * torch.rsqrt(squares / x.size(-1) * largest.square() + 1e-6)
