"""Rotates pairs of axes until the matrices are diagonal.

mechanism: Another algorithm, with roundings of its own.
problem: eigenvalues_of_tensors
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, stress):
        one = stress.clone()
        for _ in range(6):
            for p, q in ((0, 1), (0, 2), (1, 2)):
                angle = 0.5 * torch.atan2(2 * one[:, p, q], one[:, q, q] - one[:, p, p])
                turn = torch.eye(3, device=one.device).repeat(len(one), 1, 1)
                turn[:, p, p] = turn[:, q, q] = angle.cos()
                turn[:, p, q], turn[:, q, p] = angle.sin(), -angle.sin()
                one = turn.mT @ one @ turn
        return one.diagonal(dim1=1, dim2=2).sort(dim=1).values
