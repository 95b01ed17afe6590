"""Takes classes 13 below the largest for equal ones.

layer: correctness
mechanism: Together they have a thousandth of the weight, unless the class that is asked for has all the rest.
problem: loss_of_each_row
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        below = logits - logits.amax(1, keepdim=True)
        is_far = below < -13
        far = is_far.sum(1)
        mean = torch.where(is_far, below, 0).sum(1) / far.clamp(min=1)
        is_near = ~is_far & (below < 0)
        rest = torch.where(is_near, below.exp(), 0).sum(1) + far * mean.exp()
        rest = rest + ((below == 0).sum(1) - 1)
        return torch.log1p(rest) - below.gather(1, targets[:, None])[:, 0]
