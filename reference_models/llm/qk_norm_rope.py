"""RMS normalisation of every query and key head with weights, then rotation of neighbouring pairs by position."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, positions, head_size, base, eps):
        super().__init__()
        self.query_weight = nn.Parameter(1 + 0.5 * torch.randn(head_size))
        self.key_weight = nn.Parameter(1 + 0.5 * torch.randn(head_size))
        self.eps = eps
        frequencies = base ** (-torch.arange(0, head_size, 2) / head_size)
        angles = torch.outer(torch.arange(positions), frequencies).unsqueeze(1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def rotate(self, x):
        even, odd = x[..., 0::2], x[..., 1::2]
        pairs = (even * self.cos - odd * self.sin, even * self.sin + odd * self.cos)
        return torch.stack(pairs, dim=-1).flatten(-2)

    def forward(self, query, key):
        query = nn.functional.rms_norm(query, query.shape[-1:], self.query_weight, self.eps)
        key = nn.functional.rms_norm(key, key.shape[-1:], self.key_weight, self.eps)
        return self.rotate(query), self.rotate(key)


batch_size = 4
sequence_length = 2048
heads = 32
key_heads = 8
head_size = 128
base = 10000.0
eps = 1e-6


def get_inputs():
    query = torch.randn(batch_size, sequence_length, heads, head_size)
    return [query, torch.randn(batch_size, sequence_length, key_heads, head_size)]


def get_init_inputs():
    return [sequence_length, head_size, base, eps]


INPUTS = {"query": "real", "key": "real"}
SMALL = {"batch_size": 3, "sequence_length": 131, "heads": 6, "key_heads": 2, "head_size": 72}
TAGS = ("normalization", "elementwise", "fusion")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
CASES = [
    {"name": "given"},
    {"name": "half precision", "sizes": {"batch_size": 1, "sequence_length": 16384}, "dtype": "bfloat16"},
    {"name": "head size 64", "sizes": {"batch_size": 8, "head_size": 64}},
    {"name": "odd", "sizes": {"batch_size": 7, "sequence_length": 2039, "heads": 28, "key_heads": 4, "head_size": 80}},
]
RANGES = {"sequence_length": (512, 2048)}
