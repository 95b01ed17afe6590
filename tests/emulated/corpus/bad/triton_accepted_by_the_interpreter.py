"""Python that the interpreter runs and the compiler refuses.

forward: x + 1
inputs: x=torch.randn(300)
expected: build_error
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    added = {"value": 1}
    tl.store(out + at, tl.load(x + at, mask=at < size) + added["value"], mask=at < size)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
