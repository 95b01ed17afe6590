"""Linear interpolation between knots."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, knots, values):
        after = torch.searchsorted(knots, x.contiguous(), right=True).clamp(1, knots.numel() - 1)
        share = (x - knots[after - 1]) / (knots[after] - knots[after - 1])
        return torch.lerp(values[after - 1], values[after], share)


def get_inputs():
    return [torch.rand(4000), torch.linspace(0, 1, 33), torch.randn(33)]


def get_init_inputs():
    return []
