"""Returns a view of the input, as the reference does, and a tensor of its own.

mechanism: The view changes when the next inputs are written.
problem: transposed_and_scaled
expected: correct
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.t(), x.tanh().mul_(3.0)
