"""Mean and maximum of the rows of each segment; segments follow each other and have very different lengths."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, rows, lengths):
        mean = torch.segment_reduce(rows, "mean", lengths=lengths, axis=0)
        return mean, torch.segment_reduce(rows, "max", lengths=lengths, axis=0)


segments = 8192
rows = 524288
features = 128


def get_inputs():
    # Squared: many short segments, a few long ones, each with at least one row.
    ends = (torch.rand(segments - 1).sort().values ** 2 * (rows - segments)).long()
    ends = torch.cat([ends.new_zeros(1), ends, ends.new_full((1,), rows - segments)])
    return [torch.randn(rows, features), ends.diff() + 1]


def get_init_inputs():
    return []


INPUTS = {"rows": "real", "lengths": {"kind": "counts", "low": 1}}
SMALL = {"segments": 73, "rows": 5003, "features": 41}
TAGS = ("reduction", "segments")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros", "ties")
CASES = [
    {"name": "given"},
    {"name": "few long", "sizes": {"segments": 32}},
    {"name": "many short", "sizes": {"segments": 262144, "rows": 1048576, "features": 64}},
    {"name": "odd", "sizes": {"segments": 8191, "rows": 524287, "features": 127}},
]
RANGES = {"segments": (1000, 65536)}
