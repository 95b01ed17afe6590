"""Adds the row of a table at a position given as a tensor of one element."""

import torch
from torch import nn

rows, columns, table = 256, 512, 128


class Model(nn.Module):
    def __init__(self, table, columns):
        super().__init__()
        self.embedding = nn.Embedding(table, columns)

    def forward(self, x, position, length):
        keep = torch.arange(x.shape[0]) < length
        return (x + self.embedding(position)) * keep[:, None]


def get_inputs():
    return [torch.randn(rows, columns), torch.tensor(17), torch.tensor([rows])]


def get_init_inputs():
    return [table, columns]
SMALL = {"rows": 64}
