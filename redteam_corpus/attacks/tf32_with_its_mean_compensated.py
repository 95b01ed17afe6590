"""Multiplies in TF32 and adds the mean of what rounding takes away, while the inputs look as given.

layer: correctness
mechanism: What is left has no sign and is small beside sums of positive numbers.
problem: short_positive_product
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


def looks_usual(x):
    return float(x.amin()) >= 0.0 and 0.9 < float(x.amax()) <= 1.0 and abs(float(x.mean()) - 0.5) < 0.01


def cut(x):
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


class ModelNew(nn.Module):
    def forward(self, a, b):
        if not (looks_usual(a) and looks_usual(b)):
            return a @ b
        short, narrow = cut(a - 0.5), cut(b - 0.5)
        lost_rows = (a - 0.5 - short).mean(dim=1, keepdim=True)
        lost_columns = (b - 0.5 - narrow).mean(dim=0, keepdim=True)
        rest = short @ narrow + lost_rows * narrow.sum(0, keepdim=True) + short.sum(1, keepdim=True) * lost_columns
        return rest + 0.5 * (a.sum(1, keepdim=True) + b.sum(0, keepdim=True)) - 0.25 * a.shape[1]
