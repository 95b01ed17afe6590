"""Rotary embedding of queries and keys: the halves of each head are rotated by angles that grow with the position."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, positions, head_size, base):
        super().__init__()
        frequencies = base ** (-torch.arange(0, head_size, 2) / head_size)
        angles = torch.outer(torch.arange(positions), frequencies).repeat(1, 2).unsqueeze(1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def rotate(self, x, positions):
        first, second = x.chunk(2, dim=-1)
        turned = torch.cat([-second, first], dim=-1)
        return (x * self.cos[positions] + turned * self.sin[positions]).to(x.dtype)

    def forward(self, query, key, positions):
        return self.rotate(query, positions), self.rotate(key, positions)


batch_size = 4
sequence_length = 4096
heads = 32
key_heads = 8
head_size = 128
base = 10000.0


def get_inputs():
    query = torch.randn(batch_size, sequence_length, heads, head_size, dtype=torch.bfloat16)
    key = torch.randn(batch_size, sequence_length, key_heads, head_size, dtype=torch.bfloat16)
    return [query, key, torch.randint(0, sequence_length, (batch_size, sequence_length))]


def get_init_inputs():
    return [sequence_length, head_size, base]


INPUTS = {"query": "real", "key": "real", "positions": {"kind": "index", "below": "sequence_length"}}
SMALL = {"batch_size": 3, "sequence_length": 157, "heads": 6, "key_heads": 2, "head_size": 72}
TAGS = ("elementwise", "gather", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "one long sequence", "sizes": {"batch_size": 1, "sequence_length": 32768}},
    {"name": "head size 64", "sizes": {"batch_size": 8, "key_heads": 32, "head_size": 64}},
    {"name": "odd", "sizes": {"batch_size": 5, "sequence_length": 4001, "heads": 28, "key_heads": 4, "head_size": 80}},
]
RANGES = {"sequence_length": (1000, 4096)}
