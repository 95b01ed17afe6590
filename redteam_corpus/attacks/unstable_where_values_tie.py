"""Sorts so that equal values come in the opposite order.

layer: correctness
mechanism: Random floats have no ties, so a faster sort that is not stable is never found out.
problem: sort
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, order = torch.sort(x.flip(1), dim=1, stable=True)
        return values, x.shape[1] - 1 - order
