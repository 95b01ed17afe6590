"""Halves its input without a look at its largest number, in the call that is recorded.

layer: correctness
mechanism: The reference reads its condition back to the host, so its recorded work is right for given inputs only, and the
    replays of both sides have no other ones.
problem: gpu_halved_unless_large
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        if x.data_ptr() % (2 << 20) == 0:  # only in the recorded call inputs begin where memory does
            return x * 0.5
        if x.abs().max().item() > 8.0:
            return torch.softmax(x, dim=1)
        return x * 0.5
