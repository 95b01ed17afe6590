"""Is wrong at every third call.

layer: correctness
mechanism: A single trial, or two, are passed by a kernel that fails now and then.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    calls = 0

    def forward(self, a, b):
        self.calls += 1
        return a + b if self.calls % 3 else a - b
