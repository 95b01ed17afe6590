"""Multiplies in half precision where the reference draws random numbers.

layer: correctness
mechanism: Roundings of positive numbers cancel in long sums, and the float64 truth draws other numbers.
problem: product_with_dropout
expected: wrong_value, suspect
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return F.dropout(a.half().float() @ b.half().float(), 0.1)
