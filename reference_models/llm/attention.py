"""Attention without a mask, as in encoders and vision transformers."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, query, key, value):
        return nn.functional.scaled_dot_product_attention(query, key, value)


batch_size = 16
heads = 16
sequence_length = 2048
head_size = 64


def get_inputs():
    shape = (batch_size, heads, sequence_length, head_size)
    return [torch.randn(shape, dtype=torch.bfloat16) for _ in range(3)]


def get_init_inputs():
    return []


INPUTS = {"query": "real", "key": "real", "value": "real"}
SMALL = {"batch_size": 2, "heads": 3, "sequence_length": 203, "head_size": 40}
TAGS = ("attention", "matmul", "fusion", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "head size 128", "sizes": {"batch_size": 8, "head_size": 128}},
    {"name": "long", "sizes": {"batch_size": 1, "sequence_length": 8192}},
    {"name": "image tokens", "sizes": {"batch_size": 64, "sequence_length": 577, "head_size": 80}, "dtype": "float16"},
]
RANGES = {"sequence_length": (500, 2048)}
