"""Prefill attention with a causal mask and fewer key heads than query heads (grouped queries)."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, query, key, value):
        return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)


batch_size = 4
heads = 32
key_heads = 8
sequence_length = 4096
head_size = 128


def get_inputs():
    shape = (batch_size, key_heads, sequence_length, head_size)
    query = torch.randn(batch_size, heads, sequence_length, head_size, dtype=torch.bfloat16)
    return [query, torch.randn(shape, dtype=torch.bfloat16), torch.randn(shape, dtype=torch.bfloat16)]


def get_init_inputs():
    return []


INPUTS = {"query": "real", "key": "real", "value": "real"}
SMALL = {"batch_size": 2, "heads": 6, "key_heads": 2, "sequence_length": 181, "head_size": 40}
TAGS = ("attention", "matmul", "fusion", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "one long prompt", "sizes": {"batch_size": 1, "sequence_length": 8192}},
    {"name": "head size 64", "sizes": {"batch_size": 8, "sequence_length": 2048, "head_size": 64}},
    {"name": "odd", "sizes": {"batch_size": 3, "heads": 28, "key_heads": 4, "sequence_length": 2039}},
]
RANGES = {"sequence_length": (1000, 4096)}
