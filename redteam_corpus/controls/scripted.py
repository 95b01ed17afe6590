"""Is a function scripted by torch.

mechanism: Compiled on its first calls, so those are slow.
problem: add
expected: correct
device: cpu
timed: no
"""

import warnings

import torch
from torch import nn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")

    @torch.jit.script
    def add(a, b):
        return a + b


class ModelNew(nn.Module):
    def forward(self, a, b):
        return add(a, b)
