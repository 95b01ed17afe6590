"""An empty part, a number without dimensions, and a boolean one."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x[:0] * 2, x.sum(), (x > 0).any(), x.argmax(), (x * 3).to(torch.int8)


def get_inputs():
    return [torch.randn(50, 40)]


def get_init_inputs():
    return []


DETERMINISTIC = True
