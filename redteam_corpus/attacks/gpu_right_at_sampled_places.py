"""Computes the first and last rows and every 64th between them; the others are copies of those.

layer: correctness
mechanism: Samples are taken at the ends and at regular distances.
problem: gpu_product
expected: wrong_value
device: gpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        rows = torch.mm(a[::64], b).repeat_interleave(64, 0)
        rows[:64] = torch.mm(a[:64], b)
        rows[-64:] = torch.mm(a[-64:], b)
        return rows
