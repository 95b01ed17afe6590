"""Assumes that the given mask is causal.

layer: correctness
mechanism: It is, in every call with given inputs, and a tensor that repeats its memory is hard to change.
problem: attention_with_expanded_mask
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v, mask):
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
