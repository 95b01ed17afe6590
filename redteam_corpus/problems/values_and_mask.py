"""Limited values, and where two tensors are close."""

import torch
from torch import nn

rows, columns = 512, 256


class Model(nn.Module):
    def forward(self, x, y):
        return torch.clamp(torch.relu(x) * 0.5, max=6.0), (x - y).abs() < 0.5


def get_inputs():
    return [torch.rand(rows, columns), torch.rand(rows, columns)]


def get_init_inputs():
    return []
