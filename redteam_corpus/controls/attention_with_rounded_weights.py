"""Rounds the weights to bfloat16 before they are multiplied with values, as flash attention does.

mechanism: Small weights lose digits, but none is left out.
problem: attention_in_16_bits
expected: correct
device: cpu
timed: no
language: torch
"""

import math

from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        scores = q.float() @ k.float().transpose(-2, -1) / math.sqrt(q.size(-1))
        terms = (scores - scores.amax(-1, keepdim=True)).exp()
        weighted = terms.to(v.dtype).float() @ v.float()
        return (weighted / terms.sum(-1, keepdim=True)).to(q.dtype)
