"""Ranks of the values of a row; equal values get the mean of theirs."""

import torch
from torch import nn

rows, columns = 24, 200


class Model(nn.Module):
    def forward(self, x):
        ordered = x.sort(dim=1).values
        first, last = (torch.searchsorted(ordered, x, right=right) for right in (False, True))
        return 0.5 * (first + last + 1)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
