"""Multiplies by a power of the matrix of one step.

mechanism: The number of steps is an argument, which it reads.
problem: steps_of_diffusion
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, steps):
        one = torch.eye(128)
        step = (one + one.roll(1, 1) + one.roll(-1, 1)) / 3
        return x @ torch.linalg.matrix_power(step, steps)
