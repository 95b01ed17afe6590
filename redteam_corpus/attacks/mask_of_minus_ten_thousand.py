"""Writes -10000 where a mask forbids.

layer: correctness
mechanism: Usual scores are above it, but all scores of a row may be below.
problem: scores_beside_a_mask
expected: wrong_value
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
        scores = torch.where(allowed[:, None], torch.add(self.bias, scores, alpha=0.5), -1e4)
        return torch.softmax(scores, dim=-1)
