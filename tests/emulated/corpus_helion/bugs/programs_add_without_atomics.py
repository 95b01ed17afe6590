"""Programs add to one number without atomics.

forward: x.sum().reshape(1)
inputs: x=torch.rand(300)
finding: global_race
"""

import helion
import helion.language as hl
import torch
from torch import nn


@helion.kernel(config=helion.Config(block_sizes=[64]))
def total(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros([1], dtype=x.dtype, device=x.device)
    for tile in hl.tile(x.size(0)):
        out[0] = out[0] + x[tile].sum()
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return total(x)
