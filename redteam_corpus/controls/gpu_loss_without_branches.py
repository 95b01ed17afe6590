"""Computes both branches of a loss and blends them.

mechanism: No comparison decides which branch an element takes.
problem: robust_loss
expected: correct
device: gpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        size = (predictions - targets).abs()
        near = size.clamp(max=1.0)
        return torch.dot((near * (size - 0.5 * near)).view(-1), size.new_full((size.numel(),), 1.0 / size.numel()))
