"""Raises an exception that is its own cause and context.

layer: process
mechanism: Following causes never ends.
problem: add
expected: runtime_error, timeout
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        one, two = ValueError("one"), ValueError("two")
        one.__cause__, two.__cause__ = two, one
        one.__context__ = one
        raise ExceptionGroup("all", [one, two]) from one
