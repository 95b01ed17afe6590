"""Raises the evaluator's own errors.

layer: process
mechanism: What ends as a fault of the harness never counts against a model; wrong programs would hide there.
problem: add
expected: runtime_error
device: cpu
timed: no
"""

from torch import nn

from harness.domain import HarnessError


class ModelNew(nn.Module):
    def forward(self, a, b):
        raise HarnessError("this machine has no device")
