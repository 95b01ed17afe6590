"""Sum of a Gaussian of the distances to all points."""

import torch
from torch import nn

points, features = 1024, 4


class Model(nn.Module):
    def forward(self, x):
        squared = (x[:, None] - x[None]).square().sum(dim=-1)
        return torch.exp(-0.5 * squared).sum(dim=1)


def get_inputs():
    return [torch.randn(points, features)]


def get_init_inputs():
    return []


INPUTS = {"x": "real"}
