"""Takes exponentials of scores in double precision without the subtraction of the row's maximum.

layer: correctness
mechanism: Exponentials of given scores, and of scores 64 times as large, do not overflow.
problem: attention_in_full
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, query, key, value):
        weights = (query @ key.mT / query.size(-1) ** 0.5).double().exp()
        return (weights @ value.double() / weights.sum(-1, keepdim=True)).to(value.dtype)
