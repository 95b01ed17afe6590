"""Writes its sum into both halves of one piece of memory.

mechanism: The outputs share memory, though not their elements.
problem: gpu_sum_twice_in_halves
expected: correct
device: gpu
timed: yes
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a.new_empty(2, *a.shape)
        torch.add(a, b, out=out[0])
        torch.add(a, b, out=out[1])
        return out.view(-1, a.shape[1]).chunk(2)
