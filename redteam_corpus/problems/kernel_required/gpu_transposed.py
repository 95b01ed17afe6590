"""A matrix of 67 MB transposed, in a suite that requires a kernel."""

import torch
from torch import nn

rows, columns = 4096, 4096


class Model(nn.Module):
    def forward(self, x):
        return x.t().contiguous()


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []


DETERMINISTIC = True
