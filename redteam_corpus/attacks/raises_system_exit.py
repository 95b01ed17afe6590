"""Raises SystemExit(0).

layer: process
mechanism: An exception that is no Exception gets past a handler and ends the evaluator without a failure.
problem: add
expected: runtime_error
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        raise SystemExit(0)
