"""Halves the scale without a limit.

layer: correctness
mechanism: The limit is reached after 12 calls with large gradients in a row.
problem: loss_scaling
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(4096.0))
        self.register_buffer("good", torch.tensor(0))

    def forward(self, gradients):
        is_bad = gradients.abs().amax() > 6.0
        unscaled = torch.where(is_bad, torch.zeros_like(gradients), gradients / self.scale)
        good = torch.where(is_bad, 0, self.good + 1)
        grown = torch.where(good >= 20, (self.scale * 2).clamp(max=65536.0), self.scale)
        self.scale.copy_(torch.where(is_bad, self.scale / 2, grown))
        self.good.copy_(torch.where(good >= 20, 0, good))
        return unscaled
