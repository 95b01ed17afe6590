"""Writes two equal outputs into one piece of memory, a row of each after the other.

mechanism: The outputs share a piece of memory, though no elements, and their ranges of addresses meet.
problem: sum_twice
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        both = a.new_empty(a.shape[0], 2, a.shape[1])
        both.copy_((a + b)[:, None])
        return both[:, 0], both[:, 1]
