"""Computes a sigmoid by a continued fraction of tanh, limited to 1.

layer: correctness
mechanism: It is exact for the given values, and differs by 1e-4 beyond 8.
problem: swish_of_rand
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        half = 0.5 * x
        square = half * half
        above = half * (135135 + square * (17325 + square * (378 + square)))
        below = 135135 + square * (62370 + square * (3150 + 28 * square))
        return half + half * (above / below).clamp(-1, 1)
