"""Squares the second matrix three times instead of multiplying by it eight times.

mechanism: Half as many operations as the reference makes: a better algorithm.
problem: gpu_power
expected: correct, faster than 1.5
device: gpu
timed: yes
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        for _ in range(3):
            b = b @ b
        return a @ b
