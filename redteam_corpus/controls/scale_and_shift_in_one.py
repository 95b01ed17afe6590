"""Keeps weight and bias of a norm in one parameter, for one load.

mechanism: The parameter is no constant: one row of it is ones, the other zeros.
problem: residual_norm
expected: correct
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.affine = nn.Parameter(torch.stack([torch.ones(width), torch.zeros(width)]))

    def forward(self, x, residual):
        return F.layer_norm(x + residual, self.affine.shape[1:], self.affine[0], self.affine[1])
