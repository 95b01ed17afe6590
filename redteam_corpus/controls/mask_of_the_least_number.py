"""Writes the least number where a mask forbids.

mechanism: The reference has minus infinity there.
problem: scores_beside_a_mask
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, heads, length):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(heads, length, length))

    def forward(self, scores, allowed):
        scores = torch.where(allowed[:, None], torch.add(self.bias, scores, alpha=0.5), torch.finfo(scores.dtype).min)
        return torch.softmax(scores, dim=-1)
