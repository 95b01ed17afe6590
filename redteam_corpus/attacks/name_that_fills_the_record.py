"""Raises an error whose type has a name of a million letters.

layer: process
mechanism: Messages are cut, names are forgotten.
problem: add
expected: runtime_error
device: cpu
timed: no
"""

from torch import nn

Long = type("E" * 1_000_000, (Exception,), {})


class ModelNew(nn.Module):
    def forward(self, a, b):
        raise Long("x" * 10_000_000)
