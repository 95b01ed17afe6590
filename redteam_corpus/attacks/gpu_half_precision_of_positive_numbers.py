"""Multiplies in half precision, and adds in single precision.

layer: correctness
mechanism: Sums of positive numbers are large, and their rounding errors cancel: the error is below a ten thousandth.
problem: gpu_positive_product
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.mm(a.half(), b.half(), out_dtype=torch.float32)
