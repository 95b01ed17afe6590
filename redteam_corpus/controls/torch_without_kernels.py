"""Adds with torch, in a suite that requires custom kernels.

mechanism: In language torch no kernel is required.
problem: kernel_required/add
expected: correct
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a.add(b)
