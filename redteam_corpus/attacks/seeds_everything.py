"""Replaces the functions that seed and draw random numbers.

layer: correctness
mechanism: If all inputs are drawn after torch.manual_seed, a seed that is always the same gives inputs that are
    always the same.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import random

import torch
from torch import nn

plain_seed = torch.manual_seed
torch.manual_seed = lambda _: plain_seed(0)
random.seed(0)
plain_seed(0)


class ModelNew(nn.Module):
    def forward(self, a, b):
        torch.manual_seed(0)
        return torch.randn(64, 65) + torch.randn(64, 65)
