"""Sums and differences by name."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return {"sum": a + b, "difference": a - b, "count": 3, "none": None}


def get_inputs():
    return [torch.randn(60, 70), torch.randn(60, 70)]


def get_init_inputs():
    return []


DETERMINISTIC = True
