"""Is wrong at a single element.

layer: correctness
mechanism: A mean error over thousands of elements hides one.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a + b
        out[63, 64] += 0.01
        return out
