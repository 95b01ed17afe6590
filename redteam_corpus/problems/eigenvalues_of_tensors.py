"""Eigenvalues of symmetric matrices, such as stresses."""

import torch
from torch import nn

count = 500


class Model(nn.Module):
    def forward(self, stress):
        return torch.linalg.eigvalsh(stress)


def get_inputs():
    drawn = torch.randn(count, 3, 3)
    return [drawn + drawn.mT]


def get_init_inputs():
    return []


INPUTS = {"stress": "symmetric"}
