"""Sorts each row stably, and marks identifiers that follow an equal one.

mechanism: Decides by order instead of by comparing all pairs.
problem: seen_before
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, ids):
        ordered, places = ids.sort(dim=1, stable=True)
        repeats = torch.zeros_like(ids, dtype=torch.bool)
        repeats[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
        return torch.zeros_like(repeats).scatter_(1, places, repeats)
