"""Causal attention with ALiBi: scores fall linearly with the distance, at a slope per head."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, heads):
        super().__init__()
        slopes = torch.exp2(-8.0 * torch.arange(1, heads + 1) / heads)
        self.register_buffer("slopes", slopes.view(heads, 1, 1))

    def forward(self, query, key, value):
        positions = torch.arange(query.size(2), device=query.device)
        distance = positions[:, None] - positions
        bias = (-self.slopes * distance).masked_fill(distance < 0, float("-inf"))
        return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias.to(query.dtype))


batch_size = 4
heads = 16
sequence_length = 2048
head_size = 128


def get_inputs():
    shape = (batch_size, heads, sequence_length, head_size)
    return [torch.randn(shape) for _ in range(3)]


def get_init_inputs():
    return [heads]


INPUTS = {"query": "real", "key": "real", "value": "real"}
SMALL = {"batch_size": 2, "heads": 6, "sequence_length": 151, "head_size": 40}
TAGS = ("attention", "matmul", "fusion")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "half precision", "sizes": {"batch_size": 8}, "dtype": "bfloat16"},
    {"name": "one long prompt", "sizes": {"batch_size": 1, "sequence_length": 4096}},
    {"name": "odd", "sizes": {"heads": 20, "sequence_length": 1531, "head_size": 80}},
]
RANGES = {"sequence_length": (512, 2048)}
