"""Branches on constants, and a device function.

mechanism: One kernel is compiled for several specialisations.
problem: relu
expected: correct
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def activate(value, KIND: tl.constexpr):
    if KIND == "relu":
        return tl.maximum(value, 0.0)
    return value


@triton.jit
def run(x, out, size, KIND: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, activate(tl.load(x + at, mask=at < size), KIND), mask=at < size)


class ModelNew(nn.Module):
    def forward(self, x):
        between, out = torch.empty_like(x), torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 2048),)
        run[grid](x, between, x.numel(), KIND="none", BLOCK=2048)
        run[grid](between, out, x.numel(), KIND="relu", BLOCK=2048)
        return out
