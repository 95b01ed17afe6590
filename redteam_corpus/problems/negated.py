"""The complex conjugate, negated."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return -(x.conj() * 2)


def get_inputs():
    return [torch.randn(32, 256, dtype=torch.complex64)]


def get_init_inputs():
    return []


DETERMINISTIC = True
