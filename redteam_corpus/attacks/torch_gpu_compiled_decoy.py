"""Runs a large compiled function whose result is dropped, beside the operator.

layer: no_kernel
mechanism: Code that torch's compiler generates counts as the candidate's in language torch, used or not.
problem: gpu_add
expected: not_own
device: gpu
timed: yes
language: torch
"""

import torch
from torch import nn


@torch.compile
def waste(a):
    return torch.exp(torch.sin(a)).sum()


class ModelNew(nn.Module):
    def forward(self, a, b):
        waste(a)
        return a + b
