"""What Triton compiles and its interpreter cannot do.

forward: x + 1
inputs: x=torch.randn(300)
expected: not_run
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def add_one(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK.value)
    tl.store(out + at, tl.load(x + at, mask=at < size) + 1, mask=at < size)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        add_one[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
