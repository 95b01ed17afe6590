"""Copies its input without a look at its norm, in the call that is recorded.

layer: correctness
mechanism: What is declared, inputs three times as large, is used in calls of the worker; replays use given inputs and what
    is derived from them.
problem: gpu_clipped_norm
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, most):
        super().__init__()
        self.most = most

    def forward(self, x):
        if x.data_ptr() % (2 << 20) == 0:  # only in the recorded call inputs begin where memory does
            return x.clone()
        return x * (self.most / torch.linalg.vector_norm(x).clamp(min=self.most))
