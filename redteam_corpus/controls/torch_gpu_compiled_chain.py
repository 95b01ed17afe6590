"""Has torch's compiler fuse a chain of operators.

mechanism: Has no kernel of its own; its first call takes seconds.
problem: gpu_chain
expected: correct
device: gpu
timed: yes
language: torch
"""

import torch
from torch import nn


@torch.compile(dynamic=False)
def chain(x):
    return torch.relu(torch.tanh(x * 1.5 + 0.25) * 2.0 - 0.125)


class ModelNew(nn.Module):
    def forward(self, x):
        return chain(x)
