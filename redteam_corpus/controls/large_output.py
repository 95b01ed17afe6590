"""Adds matrices of twenty megabytes, in place in its own buffer.

mechanism: Large outputs take long to copy, and their memory long to allocate.
problem: large_add
expected: correct
device: cpu
timed: yes
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a.clone().add_(b)
