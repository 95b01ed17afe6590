"""Several outputs, nested."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return {"centre": [x.mean(dim=1), x.amax(dim=1)], "spread": (x.var(dim=1), x.argmax(dim=1))}


def get_inputs():
    return [torch.randn(40, 333)]


def get_init_inputs():
    return []


DETERMINISTIC = True
