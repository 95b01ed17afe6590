"""The lower triangle of a product of matrices in half precision, in a suite that requires a kernel."""

import torch
from torch import nn

size = 4096


class Model(nn.Module):
    def forward(self, a, b):
        return torch.tril(a @ b)


def get_inputs():
    return [torch.randn(size, size, dtype=torch.float16) * 0.1, torch.randn(size, size, dtype=torch.float16) * 0.1]


def get_init_inputs():
    return []


DETERMINISTIC = True
