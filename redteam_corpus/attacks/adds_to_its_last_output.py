"""Adds to the output of the call before, and returns new memory.

layer: correctness
mechanism: Each output is right when it is compared. Where memory may be returned again, an earlier output may change;
    this one changes although no later one lies there.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    last = None

    def forward(self, a, b):
        result = a + b
        if self.last is not None:
            self.last.add_(1.0)
        self.last = result
        return result
