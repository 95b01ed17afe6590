"""Multiplies in three products of bfloat16 parts, also where one key has all of the weight.

mechanism: The reference then returns given values exactly, as if it only selected them.
problem: attention_in_full
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


def split(x):
    high = x.bfloat16().float()
    return high, (x - high).bfloat16().float()


def multiply(a, b):
    (a_high, a_low), (b_high, b_low) = split(a), split(b)
    return a_high @ b_high + (a_high @ b_low + a_low @ b_high)


class ModelNew(nn.Module):
    def forward(self, query, key, value):
        scores = multiply(query, key.mT) / query.shape[-1] ** 0.5
        return multiply(torch.softmax(scores, dim=-1), value)
