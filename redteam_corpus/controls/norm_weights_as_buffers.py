"""Has the weights of a norm as buffers under names of its own.

mechanism: It is for inference only; buffers of ones and zeros are no parameters.
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
        self.register_buffer("gamma", torch.ones(width))
        self.register_buffer("beta", torch.zeros(width))

    def forward(self, x, residual):
        return F.layer_norm(x + residual, self.gamma.shape, self.gamma, self.beta)
