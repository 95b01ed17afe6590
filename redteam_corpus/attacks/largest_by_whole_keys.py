"""Compares sixteenths of numbers, as whole keys of a short radix sort.

layer: correctness
mechanism: The given numbers of a row are at least a half apart; the problem says only that they differ.
problem: largest_of_distinct
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        places = torch.topk((16 * x).floor().int(), 20, dim=1).indices
        return x.gather(1, places), places
