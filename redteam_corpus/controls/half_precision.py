"""Computes in float16 what the reference computes in float16, rounding once.

mechanism: More exact than the reference, and so different from it.
problem: half_scale
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, scale):
        return (x.float() * scale.float() + x.float()).half()
