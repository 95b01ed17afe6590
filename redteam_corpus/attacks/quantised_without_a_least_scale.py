"""Leaves out the lower limit of the scale.

layer: correctness
mechanism: Both arguments have to differ in size before their quotient does.
problem: quantised_quotients
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, smooth):
        y = x / smooth
        scale = y.abs().amax(-1, keepdim=True) / 127
        return (y / scale).nan_to_num(0.0).round().to(torch.int8), scale
