"""Swish of values between 0 and 1."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


def get_inputs():
    return [torch.rand(64, 1031)]


def get_init_inputs():
    return []
