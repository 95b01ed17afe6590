"""The k largest values of each row, in order, and where they are."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        values, indices = torch.topk(x, self.k, dim=-1, largest=True, sorted=True)
        return values, indices


batch_size = 8192
length = 8192
k = 8


def get_inputs():
    # No two values of a row are equal, so that there is one right answer: ranks in random order, each moved by less than
    # half a rank, then scaled and shifted differently in each row.
    ranks = torch.rand(batch_size, length).argsort(dim=-1) + 0.5 * torch.rand(batch_size, length)
    scale = 1 + torch.rand(batch_size, 1)
    return [ranks * scale - length * torch.rand(batch_size, 1)]


def get_init_inputs():
    return [k]


INPUTS = {"x": {"kind": "real", "distinct": True}}
SMALL = {"batch_size": 131, "length": 2053, "k": 7}
TAGS = ("selection",)
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "larger k", "sizes": {"k": 64}},
    {"name": "short rows", "sizes": {"batch_size": 65536, "length": 1024}},
    {"name": "odd", "sizes": {"length": 8179, "k": 7}},
]
RANGES = {"length": (1024, 8192)}
