"""Attention with a mask as an input."""

import math

import torch
import torch.nn.functional as F
from torch import nn

batch, heads, tokens, width = 4, 16, 2048, 64

class Model(nn.Module):
    def forward(self, q, k, v, mask):
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        return torch.softmax(scores.masked_fill(~mask, float("-inf")), -1) @ v


def get_inputs():
    tensors = [torch.randn(batch, heads, tokens, width, dtype=torch.bfloat16) for _ in range(3)]
    return [*tensors, torch.ones(tokens, tokens, dtype=torch.bool).tril()]


def get_init_inputs():
    return []
