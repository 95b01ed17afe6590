"""An exponential whose values span fifty orders of magnitude."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.exp(x * 12)


def get_inputs():
    return [torch.randn(128, 1024)]


def get_init_inputs():
    return []


DETERMINISTIC = True
