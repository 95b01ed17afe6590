"""Multiplies in 8 bits, with a scale for each row, what has 16.

layer: correctness
mechanism: Roundings of 16 bits hide those of 8 bits, if each element may be off by several of them.
problem: latent_cache
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


def cut(x):
    scale = x.float().abs().amax(-1, keepdim=True).clamp(min=1e-30) / 127
    return (x.float() / scale).round() * scale


class ModelNew(nn.Module):
    def forward(self, query, cache):
        cache = cut(cache)
        weights = (cut(query) @ cache.transpose(1, 2) / 96**0.5).softmax(-1)
        return (cut(weights) @ cache[..., :72]).bfloat16()
