"""Attends to the first sixteen places of its cache, however many it holds.

layer: correctness
mechanism: An evaluator that makes but a few calls in a row never gets beyond the third place.
problem: decoding
expected: wrong_value, suspect
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


FEW = 16


class ModelNew(nn.Module):
    def __init__(self, batch, heads, capacity, width):
        super().__init__()
        self.register_buffer("keys", torch.zeros(batch, heads, capacity, width))
        self.register_buffer("values", torch.zeros(batch, heads, capacity, width))
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64))

    def forward(self, q, k, v):
        self.keys.index_copy_(2, self.position, k)
        self.values.index_copy_(2, self.position, v)
        held = torch.arange(FEW, device=q.device) <= self.position
        scores = q @ self.keys[:, :, :FEW].transpose(-1, -2) / math.sqrt(q.shape[-1])
        weights = torch.softmax(scores.masked_fill(~held, float("-inf")), -1)
        self.position += 1
        return weights @ self.values[:, :, :FEW]
