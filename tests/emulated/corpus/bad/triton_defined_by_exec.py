"""A kernel without a source file.

forward: x + 1
inputs: x=torch.randn(300)
expected: load_error
"""

import torch
import triton
import triton.language as tl
from torch import nn

SOURCE = """
@triton.jit
def kernel(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < size) + 1, mask=at < size)
"""
made = {"triton": triton, "tl": tl}
exec(SOURCE, made)
kernel = made["kernel"]


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
