"""Two outputs: sum and difference of two matrices of 67 MB."""

import torch
from torch import nn

rows, columns = 4096, 4097


class Model(nn.Module):
    def forward(self, a, b):
        return a + b, a - b


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs():
    return []


DETERMINISTIC = True
