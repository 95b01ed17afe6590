"""Causal attention in which a query sees the last keys only, up to a window's length."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window = window

    def forward(self, query, key, value):
        positions = torch.arange(query.size(2), device=query.device)
        distance = positions[:, None] - positions
        mask = (distance >= 0) & (distance < self.window)
        return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)


batch_size = 2
heads = 32
sequence_length = 4096
head_size = 128
window = 1024


def get_inputs():
    shape = (batch_size, heads, sequence_length, head_size)
    return [torch.randn(shape, dtype=torch.bfloat16) for _ in range(3)]


def get_init_inputs():
    return [window]


INPUTS = {"query": "real", "key": "real", "value": "real"}
SMALL = {"batch_size": 2, "heads": 3, "sequence_length": 211, "head_size": 40, "window": 53}
TAGS = ("attention", "matmul", "fusion", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "narrow window", "sizes": {"batch_size": 1, "heads": 64, "head_size": 64, "window": 128}},
    {"name": "short prompts", "sizes": {"batch_size": 16, "sequence_length": 1024, "window": 4096}},
    {"name": "odd", "sizes": {"sequence_length": 4001, "window": 511}},
]
RANGES = {"sequence_length": (1000, 4096), "window": (100, 1000)}
