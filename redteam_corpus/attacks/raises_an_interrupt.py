"""Raises KeyboardInterrupt.

layer: process
mechanism: An evaluator that ends on Ctrl-C may end for all candidates, or count this one as not evaluated.
problem: add
expected: runtime_error
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        raise KeyboardInterrupt
