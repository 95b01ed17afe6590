"""Product of positive matrices, of which each row has a gain from a table, by the level of its first factor."""

import torch
from torch import nn

rows, terms, columns, levels = 128, 8192, 128, 16


class Model(nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(levels) + 0.5)

    def forward(self, a, b):
        level = (a[:, 0] * self.gain.shape[0]).long().clamp(0, self.gain.shape[0] - 1)
        return (a @ b) * self.gain[level].unsqueeze(1)


def get_inputs():
    return [torch.rand(rows, terms), torch.rand(terms, columns)]


def get_init_inputs():
    return [levels]
