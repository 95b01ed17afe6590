"""Launches its Helion kernel, drops the result, and adds with torch.

layer: no_kernel
mechanism: A kernel is launched in each call, and the profile shows it.
problem: kernel_required/small_add
expected: rejected
device: gpu or emulated
timed: no
"""

import helion
import helion.language as hl
import torch
from torch import nn


@helion.kernel(config=helion.Config(block_sizes=[16, 64]), static_shapes=True)
def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(a)
    for tile in hl.tile(a.size()):
        out[tile] = a[tile] + b[tile]
    return out


class ModelNew(nn.Module):
    def forward(self, a, b):
        add(a, b)
        return a + b
