"""Adds rows as if no target occurred twice.

layer: correctness
mechanism: Of 262,144 targets 64 hardly ever meet.
problem: unique_scatter
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, table, targets, rows):
        out = table.clone()
        out[targets] += rows
        return out
