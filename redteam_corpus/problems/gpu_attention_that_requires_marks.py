"""Attention to what a mask marks; it fails if a query has nothing to attend to."""

import torch
from torch import nn

heads, length, width, near = 8, 2048, 64, 128


class Model(nn.Module):
    def forward(self, q, k, v, mask):
        if not mask.any(dim=1).all():
            raise ValueError("a query has nothing to attend to")
        scores = (q @ k.transpose(1, 2) * 0.125).masked_fill(~mask, float("-inf"))
        return torch.softmax(scores, dim=2) @ v


def get_inputs():
    at = torch.arange(length)
    mask = (at[:, None] - at[None, :]).abs() < near
    return [*(torch.randn(heads, length, width) for _ in range(3)), mask]


def get_init_inputs():
    return []
