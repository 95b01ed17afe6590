"""A product of two large matrices, and the sums of the first one's rows, in a suite that requires a kernel."""

import torch
from torch import nn

size = 4096


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b, a.sum(1)


def get_inputs():
    return [torch.randn(size, size), torch.randn(size, size)]


def get_init_inputs():
    return []


DETERMINISTIC = True
