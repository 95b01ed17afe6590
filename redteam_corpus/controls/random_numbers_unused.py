"""Seeds and draws random numbers that it does not use.

mechanism: It changes the state of the random generators.
problem: add
expected: correct
device: cpu
timed: no
"""

import random

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        torch.manual_seed(1)
        random.seed(1)
        torch.randn(100)
        return a + b
