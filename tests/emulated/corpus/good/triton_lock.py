"""Programs add to one buffer inside a lock.

forward: x.sum(dim=0)
inputs: x=torch.randn(60, 64)
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def add_rows(x, out, lock, N: tl.constexpr):
    at = tl.arange(0, N)
    row = tl.load(x + tl.program_id(0) * N + at)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out + at, tl.load(out + at) + row)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(64, device=x.device)
        lock = torch.zeros(1, dtype=torch.int32, device=x.device)
        add_rows[(x.shape[0],)](x, out, lock, N=64)
        return out
