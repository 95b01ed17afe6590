"""Computes the penalty in one pass over its weights in each call.

mechanism: One output depends on weights only.
problem: gpu_penalty
expected: correct
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, many):
        super().__init__()
        self.head = nn.Parameter(torch.randn(width, width) / 32.0)
        self.table = nn.Parameter(torch.randn(many, width))

    def forward(self, x):
        norm = torch.linalg.vector_norm(self.table)
        return x @ self.head, norm * norm / self.table.numel()
