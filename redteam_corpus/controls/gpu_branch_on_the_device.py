"""Takes both branches and chooses on the device.

mechanism: The twin of gpu_branch_left_out_when_recorded: nothing is read back, unlike in the reference, and all inputs are handled.
problem: gpu_halved_unless_large
expected: correct
device: gpu
timed: yes
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.where(x.abs().max() > 8.0, torch.softmax(x, dim=1), x * 0.5)
