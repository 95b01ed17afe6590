"""The positive part."""

import torch
from torch import nn

rows, columns = 128, 515


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []


DISTRIBUTIONS = ("as_given", "large", "tiny", "zeros", "alternating")
DETERMINISTIC = True
