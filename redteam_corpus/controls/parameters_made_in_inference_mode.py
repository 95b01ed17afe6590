"""Makes its weights in inference mode.

mechanism: Such weights cannot be changed in place outside of it.
problem: linear_relu
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    @torch.inference_mode()
    def __init__(self, size):
        super().__init__()
        torch.rand(3)
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return torch.relu(self.linear(x))
