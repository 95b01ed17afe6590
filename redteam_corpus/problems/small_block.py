"""Convolutions with normalisation and a shortcut, as in image models, while training."""

import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.first = nn.Conv2d(size, size, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(size)
        self.second = nn.Conv2d(size, size, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(size)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.norm1(self.first(x)))
        return self.relu(self.norm2(self.second(y)) + x)


def get_inputs():
    return [torch.rand(5, 12, 15, 17)]


def get_init_inputs():
    return [12]


TRAINING = True
SEEDED_CALLS = True
