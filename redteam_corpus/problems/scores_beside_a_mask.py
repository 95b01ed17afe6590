"""Softmax of scaled scores with a bias, where a mask allows."""

import torch
from torch import nn

heads, length = 3, 64


class Model(nn.Module):
    def __init__(self, heads, length):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(heads, length, length))

    def forward(self, scores, allowed):
        scores = 0.5 * scores + self.bias
        return torch.softmax(scores.masked_fill(~allowed[:, None], float("-inf")), dim=-1)


def get_inputs():
    allowed = (torch.rand(4, length, length) < 0.6) | torch.eye(length, dtype=torch.bool)
    return [2 * torch.randn(4, heads, length, length), allowed]


def get_init_inputs():
    return [heads, length]


INPUTS = {"scores": "real", "allowed": {"kind": "mask", "structure": "nonempty"}}
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
