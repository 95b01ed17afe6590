"""Rows in 8 bits, each with its scale."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        scales = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-8) / 127
        return (x / scales).round().clamp(-127, 127).to(torch.int8), scales


def get_inputs():
    return [torch.randn(128, 256)]


def get_init_inputs():
    return []
