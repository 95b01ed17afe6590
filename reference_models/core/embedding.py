"""Rows of a table, looked up by integer indices."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, entries, features):
        super().__init__()
        self.table = nn.Embedding(entries, features)

    def forward(self, indices):
        return self.table(indices)


batch_size = 64
sequence_length = 2048
entries = 131072
features = 1024


def get_inputs():
    return [torch.randint(0, entries, (batch_size, sequence_length))]


def get_init_inputs():
    return [entries, features]


INPUTS = {"indices": {"kind": "index", "below": "entries"}}
SMALL = {"batch_size": 11, "sequence_length": 389, "entries": 5003, "features": 509}
TAGS = ("gather",)
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "narrow", "sizes": {"entries": 1048576, "features": 128}},
    {"name": "odd", "sizes": {"sequence_length": 2039, "features": 1021}},
]
RANGES = {"sequence_length": (512, 2048)}
