"""Running sum along the last dimension."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.cumsum(x, dim=self.dim)


batch_size = 8192
length = 4096
dim = 1


def get_inputs():
    return [torch.randn(batch_size, length)]


def get_init_inputs():
    return [dim]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 151, "length": 4103}
TAGS = ("scan",)
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "scale_1e-12", "alternating", "zeros", "integers")
DETERMINISTIC = True
