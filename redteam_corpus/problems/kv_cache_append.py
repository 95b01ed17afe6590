"""One decode step with a growing cache: new keys and values are appended, and the queries attend to all of them."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, query, key, value, key_cache, value_cache):
        key_cache = torch.cat([key_cache, key], dim=2)
        value_cache = torch.cat([value_cache, value], dim=2)
        output = nn.functional.scaled_dot_product_attention(query, key_cache, value_cache, enable_gqa=True)
        return output, key_cache, value_cache


batch_size = 3
heads = 6
key_heads = 2
cache_length = 173
head_size = 40


def get_inputs():
    new, cached = (batch_size, key_heads, 1, head_size), (batch_size, key_heads, cache_length, head_size)
    query = torch.randn(batch_size, heads, 1, head_size, dtype=torch.bfloat16)
    key_and_value = [torch.randn(new, dtype=torch.bfloat16) for _ in range(2)]
    return [query, *key_and_value, *(torch.randn(cached, dtype=torch.bfloat16) for _ in range(2))]


def get_init_inputs():
    return []


INPUTS = {"query": "real", "key": "real", "value": "real", "key_cache": "real", "value_cache": "real"}
DISTRIBUTIONS = ("as_given", "uniform", "tiny", "alternating", "zeros")
