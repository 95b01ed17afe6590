"""Uses the weights of a batch normalisation, not its running statistics.

layer: correctness
mechanism: The statistics are zeros and ones until a training step.
problem: fresh_batch_norm
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.convolution = nn.Conv2d(3, size, 3)
        self.norm = nn.BatchNorm2d(size)

    def forward(self, x):
        weight, bias = (value.view(1, -1, 1, 1) for value in (self.norm.weight, self.norm.bias))
        return torch.relu(self.convolution(x) * weight + bias)
