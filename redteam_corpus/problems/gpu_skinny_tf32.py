"""Product of few rows and a long sum; TF32 is permitted."""

import torch
from torch import nn

rows, inner, outer = 64, 16384, 1024


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(rows, inner), torch.randn(inner, outer)]


def get_init_inputs():
    return []


ALLOW_TF32 = True
