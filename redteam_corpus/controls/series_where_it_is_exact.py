"""Inverts by a series where its rest is below a rounding, and solves otherwise.

mechanism: A branch that depends on the size of values, and is right for all of them.
problem: near_the_identity
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, k, v):
        low = (k @ k.mT).tril(-1)
        if low.abs().sum(-1).amax() < 1e-4:
            return v - low @ (v - low @ v)
        return torch.linalg.solve_triangular(torch.eye(k.shape[1]) + low, v, upper=False)
