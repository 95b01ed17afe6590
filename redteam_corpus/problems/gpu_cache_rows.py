"""Writes 64 new rows into a cache of 32768 rows at given places, and returns the scores of the new rows."""

import torch
from torch import nn

rows, columns, new = 32768, 1024, 64


class Model(nn.Module):
    def forward(self, cache, values, places):
        cache.index_copy_(0, places, values)
        return values @ values.T / columns**0.5


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(new, columns), torch.randperm(rows)[:new]]


def get_init_inputs():
    return []


IN_PLACE = True
