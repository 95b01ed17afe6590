"""Has torch's compiler record CUDA graphs, and returns outputs in their memory.

mechanism: Inputs are copied into static memory, and outputs lie in a pool that the next call overwrites; a warm-up uses it otherwise.
problem: gpu_chain_of_gates
expected: correct
device: gpu
timed: yes
language: torch
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


@torch.compile(mode="reduce-overhead")
def compute(x, y):
    z = torch.sigmoid(x) * torch.tanh(y) + F.gelu(x * y)
    return z - z.mean(-1, keepdim=True)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return compute(x, y)
