"""Adds a row per class, within limits, in place."""

import torch
from torch import nn

rows, columns, classes = 256, 128, 16
IN_PLACE = True


class Model(nn.Module):
    def forward(self, x, bias, which):
        x.copy_(torch.clamp(torch.relu(x) + bias[which], max=6.0))
        return x


def get_inputs():
    return [torch.rand(rows, columns), torch.rand(classes, columns), torch.randint(0, classes, (rows,))]


def get_init_inputs():
    return []
