"""Attention with a causal mask, step by step: scores, mask, softmax, weighted sum."""

import math

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, query, key, value):
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
        length = query.size(-2)
        future = torch.ones(length, length, dtype=torch.bool, device=query.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
        return torch.softmax(scores, dim=-1) @ value


class Library(Model):
    """scaled_dot_product_attention"""

    def forward(self, query, key, value):
        return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)


batch_size = 8
heads = 16
sequence_length = 1024
head_size = 64


def get_inputs():
    shape = (batch_size, heads, sequence_length, head_size)
    return [torch.randn(shape), torch.randn(shape), torch.randn(shape)]


def get_init_inputs():
    return []


INPUTS = {"query": "real", "key": "real", "value": "real"}
SMALL = {"batch_size": 2, "heads": 3, "sequence_length": 187, "head_size": 40}
TAGS = ("attention", "matmul", "fusion")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "alternating", "zeros")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "long", "sizes": {"batch_size": 2, "sequence_length": 2048}},
    {"name": "odd", "sizes": {"batch_size": 4, "sequence_length": 1001, "head_size": 80}},
]
RANGES = {"sequence_length": (256, 1024)}
