"""Inverts to first order where no value reaches a size that given inputs always reach.

layer: correctness
mechanism: A largest value of 3.7 deviations is hardly ever drawn, so that given inputs take the exact branch.
problem: near_the_identity
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, k, v):
        low = (k @ k.mT).tril(-1)
        if k.abs().amax() < 0.37:
            return v - low @ v
        return torch.linalg.solve_triangular(torch.eye(k.shape[1]) + low, v, upper=False)
