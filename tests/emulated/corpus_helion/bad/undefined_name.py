"""A name in the kernel that nothing defines.

forward: x + 1
inputs: x=torch.randn(300)
expected: build_error | runtime_error
"""

import helion
import helion.language as hl
import torch
from torch import nn


@helion.kernel(config=helion.Config(block_sizes=[64]))
def add(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size()):
        out[tile] = x[tile] + offset  # noqa: F821
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return add(x)
