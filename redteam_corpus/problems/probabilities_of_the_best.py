"""Softmax over the k largest logits of each row; all others get zero."""

import torch
from torch import nn

rows, columns, best = 24, 700, 20


class Model(nn.Module):
    def forward(self, logits):
        least = torch.topk(logits, best, dim=-1).values[:, -1:]
        return torch.softmax(logits.masked_fill(logits < least, float("-inf")), dim=-1)


def get_inputs():
    ranks = torch.rand(rows, columns).argsort(dim=-1) + 0.5 * torch.rand(rows, columns)
    return [(ranks - columns) / 16]


def get_init_inputs():
    return []


INPUTS = {"logits": {"kind": "real", "distinct": True}}
