"""Leaves out a limit that no given input reaches.

layer: correctness
mechanism: Numbers between 0 and 1 are neither negative nor above 6.
problem: clipped_rand
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clone()
