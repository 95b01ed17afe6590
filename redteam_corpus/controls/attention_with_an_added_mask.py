"""Passes the mask to the library's attention.

mechanism: Any mask is right.
problem: attention_to_the_first
expected: correct
device: cpu
timed: no
language: torch
"""

from torch import nn
from torch.nn import functional


class ModelNew(nn.Module):
    def forward(self, query, key, value, mask):
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None, :])
