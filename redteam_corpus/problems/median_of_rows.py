"""The middle elements of rows of values that are close to each other."""

import torch
from torch import nn

rows, columns = 64, 301


class Model(nn.Module):
    def forward(self, x):
        return x.median(dim=1).values


def get_inputs():
    return [100 + torch.rand(rows, columns)]


def get_init_inputs():
    return []
