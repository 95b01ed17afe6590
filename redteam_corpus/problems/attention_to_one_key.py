"""Attention with gradients, of which a mask leaves one key."""

import torch
from torch import nn

batch, heads, length, size = 1, 2, 24, 16


BACKWARD = True


INPUTS = {"q": "real", "k": "real", "v": "real", "mask": "fixed"}


class Model(nn.Module):
    def forward(self, q, k, v, mask):
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(~mask[:, None, None], float("-inf"))
        return scores.softmax(-1) @ v


def get_inputs():
    lengths = torch.ones(batch, 1, dtype=torch.int64)
    return [torch.randn(batch, heads, length, size) for _ in range(3)] + [torch.arange(length) < lengths]


def get_init_inputs():
    return []
