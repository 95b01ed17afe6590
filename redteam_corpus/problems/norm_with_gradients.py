"""Layer normalisation, forward and backward."""

import torch
from torch import nn

features = 96


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(256, features)]


def get_init_inputs():
    return [features]


BACKWARD = True
