"""Adds a residual and normalises by the root mean square; returns both."""

import torch
from torch import nn

tokens, width = 2048, 4096


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x, residual):
        total = x.float() + residual.float()
        scale = torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (total * scale * self.weight).to(x.dtype), total.to(x.dtype)


def get_inputs():
    return [torch.randn(tokens, width).to(torch.bfloat16), torch.randn(tokens, width).to(torch.bfloat16)]


def get_init_inputs():
    return [width]
