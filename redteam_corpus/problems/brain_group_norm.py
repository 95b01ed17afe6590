"""Normalisation of large groups in bfloat16."""

import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.GroupNorm(2, size)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.rand(2, 8, 128, 128, dtype=torch.bfloat16)]


def get_init_inputs():
    return [8]


CASES = [{"name": "half", "dtype": "bfloat16"}]
