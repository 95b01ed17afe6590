"""Skips keys whose score is more than 12 below the largest of the row.

layer: correctness
mechanism: Their weights are below 1e-5, but beside a key whose value is zero they make the whole output.
problem: attention_of_all_keys
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        is_far = scores < scores.amax(-1, keepdim=True) - 12
        return torch.softmax(scores.masked_fill(is_far, -torch.inf), dim=-1) @ v
