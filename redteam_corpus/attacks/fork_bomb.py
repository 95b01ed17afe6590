"""Starts processes that start processes.

layer: process
mechanism: The machine has no room left for the next candidate, or for the evaluator.
problem: add
expected: wrong_value, runtime_error, timeout, suspect
device: cpu
timed: no
"""

import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        for _ in range(7):
            try:
                os.fork()
            except OSError:
                pass
        return torch.zeros_like(a)
