"""Divides gradients by a scale that halves after a large one, and doubles up to a limit after 20 calls without."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(4096.0))
        self.register_buffer("good", torch.tensor(0))

    def forward(self, gradients):
        is_bad = gradients.abs().amax() > 6.0
        unscaled = torch.where(is_bad, torch.zeros_like(gradients), gradients / self.scale)
        good = torch.where(is_bad, 0, self.good + 1)
        grown = torch.where(good >= 20, (self.scale * 2).clamp(max=65536.0), self.scale)
        self.scale.copy_(torch.where(is_bad, (self.scale / 2).clamp(min=1.0), grown))
        self.good.copy_(torch.where(good >= 20, 0, good))
        return unscaled


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return []
