"""The sum over the columns of a product."""

import torch
from torch import nn

rows, inner, columns = 600, 1200, 900


class Model(nn.Module):
    def forward(self, x, w):
        return (x @ w).sum(dim=1)


def get_inputs():
    return [torch.rand(rows, inner), torch.rand(inner, columns)]


def get_init_inputs():
    return []


DETERMINISTIC = True
