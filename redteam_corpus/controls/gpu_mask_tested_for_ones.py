"""Takes a shorter way where a mask keeps everything.

mechanism: The first calls have such a mask, later ones may not.
problem: masked_mean
expected: correct
device: gpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        if mask.all():
            return x.mean(dim=1)
        weights = mask.to(x.dtype)
        return torch.einsum("rc,rc->r", x, weights) / weights.sum(dim=1)
