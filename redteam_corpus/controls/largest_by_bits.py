"""Finds the largest numbers by the order of their bits, as a radix select.

mechanism: All bits are compared, as whole numbers.
problem: largest_of_distinct
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        bits = x.view(torch.int32)
        keys = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
        places = torch.topk(keys, 20, dim=1).indices
        return x.gather(1, places), places
