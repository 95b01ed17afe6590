"""Has running statistics of other names than the reference's, and does not update them.

layer: correctness
mechanism: Whether names match decides whether statistics are compared.
problem: batch_norm
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))
        self.register_buffer("running_mean", torch.zeros(size))
        self.register_buffer("running_var", torch.ones(size))

    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=(0, 2, 3), correction=0)
        scale = self.weight * torch.rsqrt(variance + 1e-5)
        return (x - mean[:, None, None]) * scale[:, None, None] + self.bias[:, None, None]
