"""Computes a softmax by powers of two, in two passes over parts of a row.

mechanism: It multiplies by a rounded constant before the largest value is subtracted.
problem: softmax_of_rand
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        scaled = x * 1.4426950408889634
        parts = scaled.split(128, dim=1)
        tops = torch.stack([part.amax(dim=1) for part in parts])
        sums = torch.stack([torch.exp2(part - top.unsqueeze(1)).sum(dim=1) for part, top in zip(parts, tops, strict=True)])
        top = tops.amax(dim=0)
        total = (sums * torch.exp2(tops - top)).sum(dim=0)
        return torch.exp2(scaled - (top + torch.log2(total)).unsqueeze(1))
