"""Causal attention whose scores are limited by a scaled tanh before the softmax."""

import math

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, cap):
        super().__init__()
        self.cap = cap

    def forward(self, query, key, value):
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
        scores = self.cap * torch.tanh(scores / self.cap)
        length = query.size(-2)
        future = torch.ones(length, length, dtype=torch.bool, device=query.device).triu(1)
        return torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1) @ value


batch_size = 2
heads = 16
sequence_length = 2048
head_size = 128
cap = 5.0


def get_inputs():
    shape = (batch_size, heads, sequence_length, head_size)
    # Queries of this size give scores around the cap.
    return [cap * torch.randn(shape), torch.randn(shape), torch.randn(shape)]


def get_init_inputs():
    return [cap]


INPUTS = {"query": "real", "key": "real", "value": "real"}
SMALL = {"batch_size": 2, "heads": 3, "sequence_length": 163, "head_size": 40}
TAGS = ("attention", "matmul", "fusion")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "head size 256", "sizes": {"heads": 8, "head_size": 256}},
    {"name": "half precision", "sizes": {"batch_size": 4}, "dtype": "bfloat16"},
    {"name": "odd", "sizes": {"heads": 15, "sequence_length": 1789, "head_size": 80}},
]
RANGES = {"sequence_length": (500, 2048)}
