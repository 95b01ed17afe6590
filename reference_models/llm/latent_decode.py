"""Decode attention over a latent cache that all heads share: its first part serves as value, all of it as key."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, latent_size):
        super().__init__()
        self.latent_size = latent_size

    def forward(self, query, cache):
        key = cache.unsqueeze(1)
        value = key[..., : self.latent_size]
        query = query.unsqueeze(1)  # heads take the place of positions
        return nn.functional.scaled_dot_product_attention(query, key, value).squeeze(1)


batch_size = 64
heads = 128
cache_length = 2048
latent_size = 512
position_size = 64


def get_inputs():
    size = latent_size + position_size
    query = torch.randn(batch_size, heads, size, dtype=torch.bfloat16)
    return [query, torch.randn(batch_size, cache_length, size, dtype=torch.bfloat16)]


def get_init_inputs():
    return [latent_size]


INPUTS = {"query": "real", "cache": "real"}
SMALL = {"batch_size": 3, "heads": 7, "cache_length": 229, "latent_size": 72, "position_size": 24}
TAGS = ("attention", "decode", "matmul", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "sixteen heads", "sizes": {"batch_size": 128, "heads": 16, "cache_length": 4096}},
    {"name": "one long sequence", "sizes": {"batch_size": 1, "cache_length": 131072}},
    {"name": "odd", "sizes": {"batch_size": 61, "heads": 20, "cache_length": 2039}},
]
RANGES = {"cache_length": (512, 2048)}
