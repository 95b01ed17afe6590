"""Sum of two matrices, in a suite that requires a kernel."""

import torch
from torch import nn

rows, columns = 256, 513


class Model(nn.Module):
    def forward(self, a, b):
        return a + b


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs():
    return []


DETERMINISTIC = True
