"""Computes the window from its number by Horner's rule, in each call.

mechanism: The number arrives before the call does.
problem: bessel_window
expected: correct
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, form):
        at = torch.linspace(-1.0, 1.0, x.shape[0])
        squared = (1.0 - at * at).mul_((0.5 * form) ** 2)
        total = torch.ones_like(at)
        for k in range(63, 0, -1):
            total.mul_(squared).mul_(1.0 / (k * k)).add_(1.0)
        return total.mul_(x)
