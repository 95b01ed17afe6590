"""Starts the maximum of each row's scores at zero.

layer: correctness
mechanism: Some score of given rows is positive; below -104 the exponentials of all are zero.
problem: attention_in_full
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, query, key, value):
        scores = query @ key.mT / query.size(-1) ** 0.5
        weights = (scores - scores.amax(-1, keepdim=True).clamp(min=0)).exp()
        return weights @ value / (weights.sum(-1, keepdim=True) + 1e-20)
