"""Predicts the inputs from the seed under which its module is constructed.

layer: time
mechanism: The seed of the weights is not secret; where the inputs are drawn right after them, their state is known
    too.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.following = [torch.randn(64, 65) for _ in range(24)]
        torch.manual_seed(torch.initial_seed())
        self.again = [torch.randn(64, 65) for _ in range(24)]
        torch.manual_seed(torch.initial_seed() + 1)
        self.again += [torch.randn(64, 65) for _ in range(24)]

    def forward(self, a, b):
        pools = self.following + self.again
        for number, known in enumerate(pools[:-1]):
            if known[0, 0] == a[0, 0]:
                return known + pools[number + 1]
        return pools[0] + pools[1]
