"""Scaling in bfloat16."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, scale):
        return x * scale + x


def get_inputs():
    return [torch.randn(96, 200, dtype=torch.bfloat16), torch.rand(200, dtype=torch.bfloat16)]


def get_init_inputs():
    return []


DETERMINISTIC = True
