"""Computes in bfloat16 with a fused form.

mechanism: Other rounding in a dtype of eight bits.
problem: brain_scale
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, scale):
        return x * (scale + 1)
