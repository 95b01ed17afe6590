"""Rows of an input that is not contiguous."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x * 2 + 1


def get_inputs():
    return [torch.randn(64, 96)[:, :77]]


def get_init_inputs():
    return []


DETERMINISTIC = True
