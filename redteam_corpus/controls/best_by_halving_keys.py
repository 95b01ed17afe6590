"""Halves the range of keys until one is left.

mechanism: Another algorithm to select the k largest.
problem: probabilities_of_the_best
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits):
        bits = logits.contiguous().view(torch.int32)
        keys = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).long()
        low, high = keys.amin(-1, keepdim=True), keys.amax(-1, keepdim=True) + 1
        for _ in range(33):
            middle = (low + high) // 2
            enough = (keys >= middle).sum(-1, keepdim=True) >= 20
            low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
        return torch.softmax(logits.masked_fill(keys < low, float("-inf")), dim=-1)
