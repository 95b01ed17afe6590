"""Compares only the low 32 bits of identifiers.

layer: correctness
mechanism: Two random identifiers of 40 bits with equal low halves are hardly ever drawn.
problem: seen_before
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, ids):
        short = ids.to(torch.int32)
        equal = short[:, :, None] == short[:, None, :]
        return equal.tril(-1).any(dim=2)
