"""Decode attention: one query per sequence over a long cache, several query heads per key head."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, query, key_cache, value_cache):
        return nn.functional.scaled_dot_product_attention(query, key_cache, value_cache, enable_gqa=True)


batch_size = 64
heads = 32
key_heads = 8
cache_length = 4096
head_size = 128


def get_inputs():
    shape = (batch_size, key_heads, cache_length, head_size)
    query = torch.randn(batch_size, heads, 1, head_size, dtype=torch.bfloat16)
    return [query, torch.randn(shape, dtype=torch.bfloat16), torch.randn(shape, dtype=torch.bfloat16)]


def get_init_inputs():
    return []


INPUTS = {"query": "real", "key_cache": "real", "value_cache": "real"}
SMALL = {"batch_size": 5, "heads": 12, "key_heads": 3, "cache_length": 389, "head_size": 40}
TAGS = ("attention", "decode", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "one long sequence", "sizes": {"batch_size": 1, "cache_length": 131072}},
    {"name": "two key heads", "sizes": {"key_heads": 2}},
    {"name": "odd", "sizes": {"batch_size": 61, "heads": 28, "key_heads": 4, "cache_length": 4091, "head_size": 64}},
]
RANGES = {"cache_length": (1000, 4096)}
