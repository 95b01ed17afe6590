"""Codes that move to the mean of the vectors in their direction; those without any get the vector of their number."""

import torch
from torch import nn

vectors, codes, size = 1000, 12, 8


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.book = nn.Parameter(torch.randn(codes, size))

    def forward(self, x):
        nearest = (x @ torch.nn.functional.normalize(self.book, dim=1).T).argmax(dim=1)
        counts = torch.bincount(nearest, minlength=codes).unsqueeze(1)
        sums = torch.zeros_like(self.book).index_add(0, nearest, x)
        return torch.where(counts > 0, sums / counts, x[:codes])


def get_inputs():
    return [torch.tanh(torch.randn(vectors, size))]


def get_init_inputs():
    return []
