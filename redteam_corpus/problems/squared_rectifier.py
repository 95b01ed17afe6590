"""The square of the positive part of a linear layer, also of small values."""

import torch
from torch import nn

rows, width, hidden = 61, 96, 131


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.linear = nn.Linear(width, hidden, bias=False)

    def forward(self, x):
        return torch.relu(self.linear(x)).square()


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width, hidden]


INPUTS = {"x": "real"}
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
