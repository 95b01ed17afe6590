"""The largest value of each row, whose gradient all equal ones share."""

import torch
from torch import nn

rows, columns = 64, 128


class Model(nn.Module):
    def forward(self, x):
        return x.amax(dim=1)


def get_inputs():
    return [torch.randn(rows, columns, requires_grad=True)]


def get_init_inputs():
    return []


BACKWARD = True
DISTRIBUTIONS = ("as_given", "normal", "ties")
