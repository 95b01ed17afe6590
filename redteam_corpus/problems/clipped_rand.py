"""Numbers between 0 and 1, limited to 6."""

import torch
from torch import nn

rows, columns = 128, 515


class Model(nn.Module):
    def forward(self, x):
        return nn.functional.relu6(x)


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return []
