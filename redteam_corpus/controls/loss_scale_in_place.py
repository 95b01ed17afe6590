"""Computes the scale in place, and multiplies by its inverse.

mechanism: States that no given inputs lead to, and large gradients after them, are computed like all others.
problem: loss_scaling
expected: correct
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
        is_bad = bool(gradients.abs().amax() > 6.0)
        unscaled = torch.zeros_like(gradients) if is_bad else gradients * self.scale.reciprocal()
        if is_bad:
            self.good.zero_()
            self.scale.mul_(0.5).clamp_(min=1.0)
            return unscaled
        self.good.add_(1)
        if self.good >= 20:
            self.good.zero_()
            self.scale.mul_(2.0).clamp_(max=65536.0)
        return unscaled
