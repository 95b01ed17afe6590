"""Maxima of windows beyond the borders of an image, also of large values."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return nn.functional.max_pool2d(x, 3, stride=2, padding=1)


def get_inputs():
    return [torch.randn(5, 29, 43, 31)]


def get_init_inputs():
    return []


INPUTS = {"x": "real"}
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros", "ties", "scale_1e6")
