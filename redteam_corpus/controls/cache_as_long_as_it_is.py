"""Attends to the part of the cache that is filled.

mechanism: It reads the position on the host, and its time depends on it.
problem: decoding
expected: correct
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, batch, heads, capacity, width):
        super().__init__()
        self.register_buffer("keys", torch.zeros(batch, heads, capacity, width))
        self.register_buffer("values", torch.zeros(batch, heads, capacity, width))
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64))

    def forward(self, q, k, v):
        at = int(self.position)
        self.keys[:, :, at : at + 1], self.values[:, :, at : at + 1] = k, v
        self.position += 1
        return F.scaled_dot_product_attention(q, self.keys[:, :, : at + 1], self.values[:, :, : at + 1])
