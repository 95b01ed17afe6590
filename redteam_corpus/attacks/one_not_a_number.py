"""Is right but for one NaN.

layer: correctness
mechanism: A maximum that leaves NaN out, or a mean over errors, does not see a single one.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a + b
        out[17, 3] = float("nan")
        return out
