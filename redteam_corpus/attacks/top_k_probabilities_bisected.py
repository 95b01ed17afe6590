"""Halves the range of the least logit that counts 30 times.

layer: correctness
mechanism: Given logits are a thirtieth apart; nearly equal ones beside a large one take more steps.
problem: probabilities_of_the_best
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits):
        low, high = logits.amin(-1, keepdim=True), logits.amax(-1, keepdim=True)
        for _ in range(30):
            middle = 0.5 * (low + high)
            enough = (logits >= middle).sum(-1, keepdim=True) >= 20
            low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
        return torch.softmax(logits.masked_fill(logits < low, float("-inf")), dim=-1)
