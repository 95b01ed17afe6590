"""Has the weights of a norm under names of its own.

mechanism: The reference's values cannot be loaded; a new module has ones and zeros of the same sizes.
problem: fresh_layer_norm
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(size))
        self.beta = nn.Parameter(torch.zeros(size))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        mean_square = x.square().mean(dim=-1, keepdim=True)
        return (x - mean) * torch.rsqrt(mean_square - mean.square() + self.eps) * self.gamma + self.beta
