"""Subtracts the running sum before the first mark from that at the last.

layer: correctness
mechanism: The given marks are a range without gaps, which the problem does not say.
problem: sums_between_marks
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn
from torch.nn import functional


class ModelNew(nn.Module):
    def forward(self, x, marks):
        sums = functional.pad(x.double().cumsum(dim=1), (1, 0))
        first = marks.int().argmax(dim=1, keepdim=True)
        last = first + marks.sum(dim=1, keepdim=True)
        return (sums.gather(1, last) - sums.gather(1, first))[:, 0].float()
