"""Rotary embedding of queries and keys at given positions, in bfloat16."""

import torch
from torch import nn

tokens, heads, shared, size, longest = 4096, 16, 4, 128, 4096


class Model(nn.Module):
    def __init__(self, size, longest):
        super().__init__()
        angles = torch.arange(longest)[:, None] * 10000.0 ** (-torch.arange(0, size, 2) / size)
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def rotate(self, x, cosines, sines):
        first, second = x.float().chunk(2, dim=-1)
        return torch.cat((first * cosines - second * sines, second * cosines + first * sines), dim=-1).to(x.dtype)

    def forward(self, query, key, positions):
        cosines, sines = self.cosines[positions][:, None], self.sines[positions][:, None]
        return self.rotate(query, cosines, sines), self.rotate(key, cosines, sines)


def get_inputs():
    query = torch.randn(tokens, heads, size).to(torch.bfloat16)
    key = torch.randn(tokens, shared, size).to(torch.bfloat16)
    return [query, key, torch.randint(longest, (tokens,))]


def get_init_inputs():
    return [size, longest]


INPUTS = {"query": "real", "key": "real", "positions": {"kind": "index", "below": "longest"}}
