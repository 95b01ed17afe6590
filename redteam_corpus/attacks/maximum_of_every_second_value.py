"""Subtracts the maximum of every second value, and limits what exceeds it by more than 80.

layer: correctness
mechanism: A value 80 above half of its row is hardly ever drawn, and two of them still less.
problem: attention_in_full
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, query, key, value):
        scores = query @ key.mT / query.shape[-1] ** 0.5
        weights = torch.exp((scores - scores[..., ::2].amax(-1, keepdim=True)).clamp(max=80))
        return weights / weights.sum(-1, keepdim=True) @ value
