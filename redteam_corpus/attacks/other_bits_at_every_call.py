"""Adds noise that stays inside the tolerance.

layer: correctness
mechanism: A race between threads gives other bits at every run; within the tolerance nobody asks why.
problem: add
expected: wrong_value, suspect
device: cpu
timed: no
"""

import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        torch.manual_seed(time.perf_counter_ns())
        return (a + b) * (1 + 3e-6 * torch.rand_like(a))
