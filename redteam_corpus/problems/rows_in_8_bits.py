"""Rows divided by their largest absolute value and stored in 8 bits, with the factors that restore them."""

import torch
from torch import nn

rows, columns, largest = 64, 256, 448.0


class Model(nn.Module):
    def forward(self, x):
        scale = x.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / largest
        return (x / scale).to(torch.float8_e4m3fn), scale


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
