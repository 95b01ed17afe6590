"""Attention to what a mask marks, and the queries in steps of a ten-thousandth, which a rounding may change by one."""

import torch
from torch import nn

heads, length, width, near = 8, 2048, 64, 128


class Model(nn.Module):
    def forward(self, q, k, v, mask):
        scores = (q @ k.transpose(1, 2) * 0.125).masked_fill(~mask, float("-inf"))
        return torch.softmax(scores, dim=2) @ v, (q * 10000.0).to(torch.int32)


def get_inputs():
    at = torch.arange(length)
    mask = (at[:, None] - at[None, :]).abs() < near
    return [*(torch.randn(heads, length, width) for _ in range(3)), mask]


def get_init_inputs():
    return []


INPUTS = {"q": "real", "k": "real", "v": "real", "mask": {"kind": "mask", "structure": "nonempty"}}
