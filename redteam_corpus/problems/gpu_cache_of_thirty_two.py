"""Attends to the keys and values of all calls so far, of which a cache of 17 MB holds thirty-two."""

import torch
from torch import nn

heads, slots, width = 1024, 32, 64


class Model(nn.Module):
    def __init__(self, heads, slots, width):
        super().__init__()
        self.register_buffer("keys", torch.zeros(heads, slots, width))
        self.register_buffer("values", torch.zeros(heads, slots, width))
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))

    def forward(self, q, k, v):
        self.keys.index_copy_(1, self.count, k[:, None])
        self.values.index_copy_(1, self.count, v[:, None])
        at = torch.arange(self.keys.shape[1], device=q.device)
        scores = (self.keys @ q[:, :, None])[:, :, 0] * 0.125
        scores = scores.masked_fill(at > self.count, float("-inf"))
        self.count += 1
        return (torch.softmax(scores, dim=1)[:, None] @ self.values)[:, 0]


def get_inputs():
    return [torch.randn(heads, width) for _ in range(3)]


def get_init_inputs():
    return [heads, slots, width]
