"""Scores of causal attention, with -1e9 where a query must not look."""

import torch
from torch import nn

batch, length, width = 4, 96, 64


class Model(nn.Module):
    def forward(self, queries, keys):
        scores = queries @ keys.transpose(1, 2) / width**0.5
        later = torch.ones(length, length, dtype=torch.bool, device=queries.device).triu(1)
        return scores.masked_fill(later, -1e9)


def get_inputs():
    return [torch.randn(batch, length, width), torch.randn(batch, length, width)]


def get_init_inputs():
    return []
