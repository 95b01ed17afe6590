"""Attends to as many first elements as the mask has zeros.

layer: correctness
mechanism: Each given mask keeps the first elements, which the problem does not say.
problem: attention_to_the_first
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn
from torch.nn import functional


class ModelNew(nn.Module):
    def forward(self, query, key, value, mask):
        results = []
        for q, k, v, row in zip(query, key, value, mask, strict=True):
            length = int((row == 0).sum())
            results.append(functional.scaled_dot_product_attention(q[None], k[None, :, :length], v[None, :, :length]))
        return torch.cat(results)
