"""Product of positive matrices, divided by its mean."""

import torch
from torch import nn

size = 1024


class Model(nn.Module):
    def forward(self, a, b):
        product = a @ b
        return product / product.mean()


def get_inputs():
    return [torch.rand(size, size), torch.rand(size, size)]


def get_init_inputs():
    return []


DISTRIBUTIONS = ("as_given", "tiny")
