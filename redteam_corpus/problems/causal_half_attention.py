"""Causal attention in half precision."""

import torch
from torch import nn
from torch.nn import functional as F

class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

batch, heads, seq, dim = 1, 2, 150, 64
def get_inputs():
    return [torch.randn(batch, heads, seq, dim).half() for _ in range(3)]
def get_init_inputs():
    return []
