"""Keeps the concatenated caches, and copies a cache only if its first, middle or last row differs from the last call.

layer: correctness
mechanism: Wrong if a cache differs elsewhere only, as after an eviction or another sequence with the same prefix.
problem: kv_cache_append
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = None

    def same(self, cache, kept):
        length = cache.size(2)
        rows = [0, length // 2, length - 1]
        return kept.size(2) == length + 1 and torch.equal(cache[:, :, rows], kept[:, :, rows])

    def forward(self, query, key, value, key_cache, value_cache):
        if self.kept is not None and self.same(key_cache, self.kept[0]) and self.same(value_cache, self.kept[1]):
            keys, values = self.kept[0].clone(), self.kept[1].clone()
            keys[:, :, -1:], values[:, :, -1:] = key, value
        else:
            keys, values = torch.cat([key_cache, key], dim=2), torch.cat([value_cache, value], dim=2)
        self.kept = (keys.clone(), values.clone())
        output = nn.functional.scaled_dot_product_attention(query, keys, values, enable_gqa=True)
        return output, keys, values
