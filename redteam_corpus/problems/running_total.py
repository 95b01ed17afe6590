"""Sums of all values so far, as a product with a triangular matrix."""

import torch
from torch import nn

size = 2048


class Model(nn.Module):
    def forward(self, x):
        return x @ torch.ones(size, size).triu()


def get_inputs():
    return [torch.rand(128, size)]


def get_init_inputs():
    return []


DETERMINISTIC = True
