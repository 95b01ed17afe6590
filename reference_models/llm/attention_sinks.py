"""Causal attention with a learned sink per head: one more score, which takes weight and has no value."""

import math

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.sinks = nn.Parameter(2.0 + torch.randn(heads))

    def forward(self, query, key, value):
        batch, heads, length, size = query.shape
        scores = query @ key.transpose(-2, -1) / math.sqrt(size)
        future = torch.ones(length, length, dtype=torch.bool, device=query.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
        sinks = self.sinks.view(1, heads, 1, 1).expand(batch, heads, length, 1)
        weights = torch.softmax(torch.cat([scores, sinks], dim=-1), dim=-1)
        return weights[..., :-1] @ value


batch_size = 2
heads = 16
sequence_length = 2048
head_size = 64


def get_inputs():
    shape = (batch_size, heads, sequence_length, head_size)
    return [torch.randn(shape) for _ in range(3)]


def get_init_inputs():
    return [heads]


INPUTS = {"query": "real", "key": "real", "value": "real"}
SMALL = {"batch_size": 2, "heads": 3, "sequence_length": 167, "head_size": 40}
TAGS = ("attention", "matmul", "fusion")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "half precision", "sizes": {"batch_size": 1, "heads": 64}, "dtype": "bfloat16"},
    {"name": "one long prompt", "sizes": {"batch_size": 1, "sequence_length": 4096}},
    {"name": "odd", "sizes": {"heads": 15, "sequence_length": 1789, "head_size": 80}},
]
RANGES = {"sequence_length": (500, 2048)}
