"""Computes a branch that is scaled by small weights, and adds it in one step.

mechanism: The branch hardly shows in the outputs, and its order of operations is another than the reference's.
problem: gpu_layer_scale_without_biases
expected: correct
device: gpu
timed: yes
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width, bias=False)
        self.second = nn.Linear(width, width, bias=False)
        self.scale = nn.Parameter(torch.full((width,), 1e-6))

    def forward(self, x):
        return torch.addcmul(x, self.second(self.first(x).relu_()), self.scale)
