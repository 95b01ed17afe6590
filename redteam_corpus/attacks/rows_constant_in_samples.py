"""Takes rows whose samples are equal for constant ones.

layer: correctness
mechanism: A layer norm of equal values is its bias, and random values are never equal in eight places.
problem: fresh_layer_norm
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        is_constant = (x[:, ::24] == x[:, :1]).all(1, keepdim=True)
        return torch.where(is_constant, self.norm.bias, self.norm(x))
