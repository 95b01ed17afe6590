"""Leaves out the weight and the bias of a frozen batch normalisation.

layer: correctness
mechanism: They are buffers of ones and zeros, which outputs do not show.
problem: frozen_norm
expected: wrong_value, suspect
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm = nn.Module()
        self.norm.register_buffer("running_mean", torch.zeros(outputs))
        self.norm.register_buffer("running_var", torch.ones(outputs))

    def forward(self, x):
        scale = (self.norm.running_var + 1e-5).rsqrt()
        return torch.relu((self.conv(x) - self.norm.running_mean[:, None, None]) * scale[:, None, None])
