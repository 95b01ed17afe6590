"""Values of a stated range, limited to a half of it."""

import torch
from torch import nn

rows, columns = 64, 300


class Model(nn.Module):
    def forward(self, x):
        return x.clamp(-50.0, 50.0) * 2


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []


INPUTS = {"x": {"kind": "real", "low": -100, "high": 100}}
