"""Subtracts the larger maximum of the even and the odd places.

mechanism: Similar to the maximum of half of the values, but of all.
problem: attention_in_full
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, query, key, value):
        scores = query @ key.mT / query.shape[-1] ** 0.5
        even, odd = (scores[..., first::2].amax(-1, keepdim=True) for first in range(2))
        weights = torch.exp(scores - torch.maximum(even, odd))
        return weights / weights.sum(-1, keepdim=True) @ value
