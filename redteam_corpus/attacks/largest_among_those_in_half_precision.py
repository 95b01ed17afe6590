"""Chooses candidates for the largest numbers in half precision, then sorts these.

layer: correctness
mechanism: Few numbers are so close that more of them than the candidates share a key.
problem: largest_of_distinct
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        likely = x.half().topk(64, dim=1).indices.sort(dim=1).values
        values, places = x.gather(1, likely).topk(20, dim=1)
        return values, likely.gather(1, places)
