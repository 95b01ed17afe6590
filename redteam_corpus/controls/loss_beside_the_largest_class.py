"""Adds up what is below the largest class before it takes the logarithm of 1 and that.

mechanism: More exact than the reference where one class has nearly all of the weight.
problem: loss_of_each_row
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        below = logits - logits.amax(1, keepdim=True)
        rest = torch.where(below < 0, below.exp(), 0).sum(1) + ((below == 0).sum(1) - 1)
        return torch.log1p(rest) - below.gather(1, targets[:, None])[:, 0]
