"""Counts edits along the diagonals of the table.

mechanism: Another order of the same table.
problem: edits_between_words
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, first, second):
        rows, length = first.shape
        before = before_that = None
        for total in range(2 * length + 1):
            low, high = max(0, total - length), min(total, length)
            made = torch.full((rows, length + 1), 1e6)
            at = torch.arange(low, high + 1)
            best = torch.full((rows, len(at)), float(total) if total < 1 else 1e6)
            if before is not None:
                best = torch.minimum(best, before[:, at] + 1)
                best = torch.minimum(best, torch.where(at > 0, before[:, (at - 1).clamp(min=0)] + 1, 1e6))
            if before_that is not None:
                inside = (at > 0) & (total - at > 0)
                differ = first[:, (at - 1).clamp(min=0)] != second[:, (total - at - 1).clamp(min=0)]
                exchanged = before_that[:, (at - 1).clamp(min=0)] + differ
                best = torch.where(inside, torch.minimum(best, exchanged), best)
            made[:, low : high + 1] = best
            before_that, before = before, made
        return before[:, -1]
