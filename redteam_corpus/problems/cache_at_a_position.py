"""A step of decoding with caches that are changed in place."""

import torch
from torch import nn

batch, heads, capacity, width = 2, 4, 128, 32
IN_PLACE = True


class Model(nn.Module):
    def forward(self, q, k, v, keys, values, position):
        keys.index_copy_(2, position, k)
        values.index_copy_(2, position, v)
        held = torch.arange(capacity) <= position[-1]
        scores = (q @ keys.transpose(-1, -2) / width**0.5).masked_fill(~held, float("-inf"))
        return torch.softmax(scores, -1) @ values


def get_inputs():
    new = [torch.randn(batch, heads, 1, width) for _ in range(3)]
    old = [torch.randn(batch, heads, capacity, width) for _ in range(2)]
    return [*new, *old, torch.tensor([50])]


def get_init_inputs():
    return []
