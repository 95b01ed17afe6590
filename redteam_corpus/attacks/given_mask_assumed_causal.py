"""Assumes that the given mask is causal.

layer: correctness
mechanism: get_inputs always gives the lower triangle.
problem: given_mask
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, scores, mask):
        e = scores.sub(scores.amax(-1, keepdim=True)).exp().tril()
        return e / e.sum(-1, keepdim=True)
