"""Runs in inference mode.

mechanism: Its outputs are tensors that no other mode may change.
problem: linear_relu
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    @torch.inference_mode()
    def forward(self, x):
        return torch.relu(self.linear(x))
