"""A running sum over blocks: each program waits for the sum of the blocks before its own.

forward: torch.cumsum(x, 0)
inputs: x=torch.rand(1500)
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def running_sum(x, out, carried, ready, size, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < size, other=0.0)
    sums, total = tl.cumsum(values, 0), tl.sum(values, 0)
    before = 0.0
    if block > 0:
        while tl.atomic_cas(ready + block - 1, 1, 1) == 0:
            pass
        before = tl.load(carried + block - 1)
    tl.store(carried + block, before + total)
    tl.debug_barrier()
    tl.atomic_xchg(ready + block, 1)
    tl.store(out + at, sums + before, mask=at < size)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        blocks = triton.cdiv(x.numel(), 64)
        carried = torch.empty(blocks, device=x.device)
        ready = torch.zeros(blocks, dtype=torch.int32, device=x.device)
        running_sum[(blocks,)](x, out, carried, ready, x.numel(), BLOCK=64)
        return out
