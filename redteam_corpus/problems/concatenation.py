"""Puts one matrix of 16 MB below another."""

import torch
from torch import nn

rows, columns = 1024, 4096


class Model(nn.Module):
    def forward(self, a, b):
        return torch.cat((a, b))


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs():
    return []


DETERMINISTIC = True
