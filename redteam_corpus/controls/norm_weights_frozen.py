"""Has parameters without gradients, under names of its own.

mechanism: It is for inference only, so no parameter requires gradients.
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
        self.gamma = nn.Parameter(torch.ones(width), requires_grad=False)
        self.beta = nn.Parameter(torch.zeros(width), requires_grad=False)

    def forward(self, x, residual):
        return F.layer_norm(x + residual, self.gamma.shape, self.gamma, self.beta)
