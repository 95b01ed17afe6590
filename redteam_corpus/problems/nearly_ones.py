"""Values near one: all of them differ only in their last digits."""

import torch
from torch import nn

rows, columns = 64, 65


class Model(nn.Module):
    def forward(self, x):
        return 1 + x * 1e-3


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return []


DETERMINISTIC = True
