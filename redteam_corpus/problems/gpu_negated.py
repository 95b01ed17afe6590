"""The negative of 134 MB."""

import torch
from torch import nn

rows, columns = 4096, 8193


class Model(nn.Module):
    def forward(self, x):
        return -x


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []


DETERMINISTIC = True
