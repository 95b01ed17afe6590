"""Adds with torch, and writes 64 of the sums again in a Helion kernel.

layer: no_kernel
mechanism: The kernel is launched and its result is used; torch does the arithmetic.
problem: kernel_required/gpu_add
expected: not_own
device: gpu
timed: yes
language: helion
"""

import helion
import helion.language as hl
import torch
from torch import nn


@helion.kernel(config=helion.Config(block_sizes=[64]), static_shapes=True)
def mark(out: torch.Tensor) -> torch.Tensor:
    for tile in hl.tile(64):
        out[tile] = out[tile] * 1.0
    return out


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a + b
        mark(out.view(-1))
        return out
