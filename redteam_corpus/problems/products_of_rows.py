"""Multiplies the values of each row."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, rows):
        return rows.prod(1)


def get_inputs():
    return [torch.randn(256, 8)]


def get_init_inputs():
    return []


INPUTS = {"rows": "real"}
BACKWARD = True
