"""Returns an output whose destructor ends the process.

layer: process
mechanism: Results that are destroyed while nobody looks end the evaluation with code 0.
problem: add
expected: runtime_error, wrong_value
device: cpu
timed: no
"""

import os

import torch
from torch import nn


class Last(torch.Tensor):
    def __del__(self):
        os._exit(0)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a + b).as_subclass(Last)
