"""Two outputs by name, of different shapes."""

import torch
from torch import nn

rows, columns = 4096, 4097


class Model(nn.Module):
    def forward(self, x):
        return {"mean": x.mean(1), "centred": x - x.mean(1, keepdim=True)}


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []


DETERMINISTIC = True
