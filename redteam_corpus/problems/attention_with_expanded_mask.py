"""Attention with a mask that is expanded to all heads."""

import torch
from torch import nn

batch, heads, length, size = 2, 4, 65, 32


class Model(nn.Module):
    def forward(self, q, k, v, mask):
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def get_inputs():
    mask = torch.ones(length, length, dtype=torch.bool).tril().expand(batch, heads, length, length)
    return [*(torch.randn(batch, heads, length, size) for _ in range(3)), mask]


def get_init_inputs():
    return []
