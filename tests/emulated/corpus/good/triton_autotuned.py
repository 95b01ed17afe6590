"""Tuned over block sizes and warps.

forward: x * x
inputs: x=torch.randn(2049)
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=warps) for block in (64, 128, 256) for warps in (2, 4)],
    key=["size"],
)
@triton.jit
def square(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size)
    tl.store(out + at, value * value, mask=at < size)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        square[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
        return out
