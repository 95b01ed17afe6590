"""Leaves out keys that together have less than 0.8 % of a softmax.

layer: correctness
mechanism: The tolerance of 16-bit outputs is larger, but where the value of the key with most weight is zero, they are all.
problem: attention_in_16_bits
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import math

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        scores = q.float() @ k.float().transpose(-2, -1) / math.sqrt(q.size(-1))
        below = scores - scores.amax(-1, keepdim=True)
        terms = torch.where(below > -math.log(k.size(-2) / 0.008), below.exp(), 0.0)
        return (terms @ v.float() / terms.sum(-1, keepdim=True)).to(q.dtype)
