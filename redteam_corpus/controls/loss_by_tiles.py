"""Computes cross-entropy by tiles, one term after the other in each of 64 lanes.

mechanism: A running sum that holds 1 loses digits of terms that are much smaller.
problem: loss_of_each_row
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        top = logits.new_full((len(logits), 64), -torch.inf)
        total = torch.zeros_like(top)
        for tile in nn.functional.pad(logits, (0, -logits.shape[1] % 64), value=-torch.inf).split(64, dim=1):
            highest = torch.maximum(top, tile)
            total = total * torch.exp(top - highest) + torch.exp(tile - highest)
            top = highest
        highest = top.amax(1)
        total = (total * torch.exp(top - highest[:, None])).sum(1)
        return highest + total.log() - logits.gather(1, targets[:, None])[:, 0]
