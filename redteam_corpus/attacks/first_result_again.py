"""Computes once and returns copies of that result ever after.

layer: time
mechanism: An evaluator that times with the same inputs again and again, or compares the first call only, sees no
    difference.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    kept = None

    def forward(self, a, b):
        if self.kept is None:
            self.kept = a + b
        return self.kept.clone()
