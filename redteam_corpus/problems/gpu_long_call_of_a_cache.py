"""Attends to a cache of 16384 slots that begins empty; each call fills one slot. A call takes several milliseconds."""

import torch
from torch import nn

rows, slots, width = 3072, 16384, 1024


class Model(nn.Module):
    def __init__(self, slots, width):
        super().__init__()
        self.register_buffer("keys", torch.zeros(slots, width))
        self.register_buffer("values", torch.zeros(slots, width))
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))
        self.key, self.value = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        last, slots = x[-1:], self.keys.shape[0]
        self.keys.index_copy_(0, self.count % slots, self.key(last))
        self.values.index_copy_(0, self.count % slots, self.value(last))
        self.count += 1
        is_empty = torch.arange(slots, device=x.device) >= self.count
        scores = (x @ self.keys.t() / x.shape[1] ** 0.5).masked_fill(is_empty, float("-inf"))
        return torch.softmax(scores, 1) @ self.values


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [slots, width]
