"""Attention of all queries to all keys, in bfloat16."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v)


def get_inputs():
    return [torch.randn(2, 3, 130, 32, dtype=torch.bfloat16) for _ in range(3)]


def get_init_inputs():
    return []


INPUTS = {"q": "real", "k": "real", "v": "real"}
DISTRIBUTIONS = ("as_given", "uniform", "zeros")
