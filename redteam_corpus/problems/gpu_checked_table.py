"""Multiplies by a function of a table that get_inputs makes alike in each call; the table is checked first."""

import torch
from torch import nn

rows, width = 64, 2048


class Model(nn.Module):
    def forward(self, x, table):
        if not torch.isfinite(table).all():
            raise ValueError("the table has infinite values")
        return x @ torch.tanh(table @ table.t())


def get_inputs():
    table = torch.sin(torch.arange(width * width, dtype=torch.float32).view(width, width) * 0.7391) / 32.0
    return [torch.randn(rows, width), table]


def get_init_inputs():
    return []
