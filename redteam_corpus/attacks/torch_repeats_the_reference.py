"""Repeats the reference, and hopes for noise.

layer: time
mechanism: No kernel is required in language torch, so the reference itself is a valid program.
problem: wide_add
expected: no_gain, unranked
device: cpu
timed: yes
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
