"""GELU in half precision."""

import torch
from torch import nn

rows, columns = 4096, 8192


class Model(nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x)


def get_inputs():
    return [torch.randn(rows, columns).half()]


def get_init_inputs():
    return []


DETERMINISTIC = True
