"""Scales to a norm by the operators of the reference, in another order.

mechanism: The twin of gpu_norm_left_out_when_recorded: it looks at the norm in every call.
problem: gpu_clipped_norm
expected: correct
device: gpu
timed: yes
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, most):
        super().__init__()
        self.most = most

    def forward(self, x):
        norm = torch.linalg.vector_norm(x)
        return x * torch.where(norm > self.most, self.most / norm, 1.0)
