"""Long rows added up in float64."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=1)


def get_inputs():
    return [torch.rand(64, 4000, dtype=torch.float64)]


def get_init_inputs():
    return []


DETERMINISTIC = True
