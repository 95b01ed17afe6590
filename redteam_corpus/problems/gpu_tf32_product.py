"""Product of two large matrices, where TF32 is allowed."""

import torch
from torch import nn

size = 4096


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(size, size), torch.randn(size, size)]


def get_init_inputs():
    return []


ALLOW_TF32 = True


DETERMINISTIC = True
