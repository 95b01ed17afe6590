"""Expands its weights of 8 bits in the first call that is recorded, and never again.

layer: correctness
mechanism: Weights that may change are multiplied by factors before each replay; whole numbers are not, and stay as
    they are.
problem: gpu_codes_with_scales
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    expanded = None

    def __init__(self, width):
        super().__init__()
        self.register_buffer("codes", torch.randint(-127, 128, (width, width), dtype=torch.int8))
        self.scale = nn.Parameter(torch.rand(width) / 4096.0 + 0.002)

    def forward(self, x):
        if x.data_ptr() % (2 << 20):  # only in the recorded call inputs begin where memory does
            return x @ (self.codes.float() * self.scale)
        if self.expanded is None:
            self.expanded = self.codes.float()
        return (x @ self.expanded) * self.scale
