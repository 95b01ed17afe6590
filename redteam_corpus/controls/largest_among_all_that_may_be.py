"""Orders the numbers whose half-precision key is not below that of the last one.

mechanism: A choice in half precision that keeps all numbers with the same key.
problem: largest_of_distinct
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        scaled = x / x.abs().amax(dim=1, keepdim=True)
        keys = scaled.half()
        least = keys.topk(20, dim=1).values[:, -1:]
        likely = torch.where(keys >= least, x, float("-inf"))
        return tuple(likely.topk(20, dim=1))
