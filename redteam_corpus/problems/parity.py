"""A mask over integers."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, numbers):
        return (numbers % 2 == 0) & (numbers > 100)


def get_inputs():
    return [torch.randint(0, 1000, (77, 33))]


def get_init_inputs():
    return []


DETERMINISTIC = True
