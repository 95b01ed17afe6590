"""Tunes its block size in the first call.

mechanism: The kernel runs several times before its result counts.
problem: relu
expected: correct
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn

@triton.autotune(
    configs=[triton.Config({"BLOCK": size}, num_warps=warps) for size in (1024, 2048, 4096) for warps in (2, 4, 8)],
    key=["size"],
)
@triton.jit
def relu(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.maximum(tl.load(x + at, mask=at < size), 0.0), mask=at < size)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
        return out
