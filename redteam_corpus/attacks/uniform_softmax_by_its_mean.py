"""Returns one over the number of columns for inputs that look like ties.

layer: correctness
mechanism: Balanced or constant inputs are recognised and answered without work; random ones are computed.
problem: softmax
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        if torch.equal(x, x.round()) or x[0].unique().numel() < 8:
            return torch.full_like(x, 1 / x.shape[1])
        return torch.softmax(x, dim=1)
