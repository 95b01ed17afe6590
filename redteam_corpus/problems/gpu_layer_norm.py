"""Normalises rows that are nearly normal already."""

import torch
from torch import nn

rows, columns = 4096, 4096


class Model(nn.Module):
    def forward(self, x):
        return torch.nn.functional.layer_norm(x, (columns,))


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []


DETERMINISTIC = True
