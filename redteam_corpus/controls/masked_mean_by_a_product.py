"""Multiplies by the mask as weights.

mechanism: Any mask is right.
problem: mean_of_lengths
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        weights = mask.float()
        return torch.einsum("rsw,rs->rw", x, weights) / weights.sum(dim=1, keepdim=True).clamp(min=1)
