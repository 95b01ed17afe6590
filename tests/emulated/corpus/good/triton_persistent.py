"""As many programs as multiprocessors, each with a stride of the grid.

forward: torch.sigmoid(x)
inputs: x=torch.randn(5000)
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def sigmoid(x, out, size, blocks, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        inside = at < size
        tl.store(out + at, tl.sigmoid(tl.load(x + at, mask=inside)), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out, block = torch.empty_like(x), 64
        properties = triton.runtime.driver.active.utils.get_device_properties(x.device.index)
        blocks = triton.cdiv(x.numel(), block)
        sigmoid[(min(properties["multiprocessor_count"], blocks),)](x, out, x.numel(), blocks, BLOCK=block)
        return out
