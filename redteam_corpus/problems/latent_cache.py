"""Attention to a cache that all heads share, in bfloat16: its first part serves as value, all of it as key."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, query, cache):
        key = cache.unsqueeze(1)
        return nn.functional.scaled_dot_product_attention(query.unsqueeze(1), key, key[..., :72]).squeeze(1)


def get_inputs():
    return [torch.randn(3, 7, 96, dtype=torch.bfloat16), torch.randn(3, 229, 96, dtype=torch.bfloat16)]


def get_init_inputs():
    return []


INPUTS = {"query": "real", "cache": "real"}
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "alternating", "zeros")
