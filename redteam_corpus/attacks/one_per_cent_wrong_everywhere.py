"""Is off by two per cent at every hundredth element.

layer: correctness
mechanism: A checker that allows a share of mismatches, or samples a few elements, lets them pass.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a + b
        out.view(-1)[::100] *= 1.02
        return out
