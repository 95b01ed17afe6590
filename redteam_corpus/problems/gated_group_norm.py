"""Group norm and SiLU, also of values whose variance is less than eps."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        return nn.functional.silu(self.norm(x))


def get_inputs():
    return [torch.randn(3, 24, 19, 17)]


def get_init_inputs():
    return [4, 24]


INPUTS = {"x": "real"}
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny")
