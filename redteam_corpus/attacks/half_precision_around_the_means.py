"""Multiplies what remains of positive numbers without their means in half precision, rounded at random.

layer: correctness
mechanism: The means make up most of the outputs, so the errors of the rest are far below the tolerance.
problem: positive_product
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


def round_at_random(x):
    bits = x.contiguous().view(torch.int32) + torch.randint(0, 1 << 13, x.shape, dtype=torch.int32)
    return (bits >> 13 << 13).view(torch.float32)


class ModelNew(nn.Module):
    def forward(self, a, b):
        rows, columns = a.mean(dim=1, keepdim=True), b.mean(dim=0, keepdim=True)
        rest = round_at_random(a - rows) @ round_at_random(b - columns)
        return rest + rows * b.sum(dim=0, keepdim=True) + (a.sum(dim=1, keepdim=True) - a.shape[1] * rows) * columns
