"""Looks for negative numbers in a sample, and leaves out the positive part where it finds none.

layer: correctness
mechanism: Changed inputs are recognised by a few elements; given ones need no work.
problem: relu_of_rand
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        sample = x.view(-1)[:: x.numel() // 32]
        return torch.relu(x) if (sample < 0).any() or (sample > 1).any() else x.clone()
