"""Samples pictures at given places."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x, grid):
        return F.grid_sample(x, grid, align_corners=True)


def get_inputs():
    return [torch.randn(2, 8, 32, 32), torch.rand(2, 48, 48, 2) * 2 - 1]


def get_init_inputs():
    return []
