"""Counts the knots below each value instead of a binary search, and multiplies with slopes.

mechanism: If knots that are equal in all calls were replaced by any others, a binary search would find other places.
problem: between_knots
expected: correct
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, knots, values):
        after = (knots <= x[:, None]).sum(dim=1).clamp(1, knots.numel() - 1)
        slopes = values.diff() / knots.diff()
        return values[after - 1] + slopes[after - 1] * (x - knots[after - 1])
