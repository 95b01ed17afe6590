"""Scaled rows in bfloat16."""

import torch
from torch import nn

rows, columns = 4096, 8192


class Model(nn.Module):
    def forward(self, x, scale):
        return x * scale


def get_inputs():
    return [torch.randn(rows, columns).bfloat16(), torch.randn(columns).bfloat16()]


def get_init_inputs():
    return []


DETERMINISTIC = True
