"""Reads keys in blocks and rescales what it has whenever the maximum grows, with exponentials to base 2.

mechanism: Of large scores a rounding changes the weights.
problem: attention_in_full
expected: correct
device: cpu
timed: no
language: torch
"""

import math

import torch
from torch import nn

BLOCK = 16


class ModelNew(nn.Module):
    def forward(self, query, key, value):
        query = query * (math.log2(math.e) / math.sqrt(query.size(-1)))
        most = query.new_full((*query.shape[:-1], 1), -math.inf)
        total, mean = torch.zeros_like(most), torch.zeros_like(query)
        for keys, values in zip(key.split(BLOCK, 2), value.split(BLOCK, 2), strict=True):
            scores = query @ keys.mT
            higher = torch.maximum(most, scores.amax(-1, keepdim=True))
            weights, kept = (scores - higher).exp2(), (most - higher).exp2()
            total = total * kept + weights.sum(-1, keepdim=True)
            mean = mean * kept + weights @ values
            most = higher
        return mean / total
