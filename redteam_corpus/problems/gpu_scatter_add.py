"""Sums of rows by place, by atomic additions in any order."""

import torch
from torch import nn

rows, columns, places = 32768, 512, 1000


class Model(nn.Module):
    def forward(self, x, place):
        return torch.zeros(places, columns, device=x.device).index_add(0, place, x)


def get_inputs():
    return [torch.randn(rows, columns), torch.randint(0, places, (rows,))]


def get_init_inputs():
    return []
