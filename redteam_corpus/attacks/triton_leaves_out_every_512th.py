"""Counts all integers but every 512th.

layer: correctness
mechanism: A reference that does not run on the meta device is reduced to a few elements.
problem: counted_values
expected: wrong_value
device: emulated
timed: no
"""

import torch
from torch import nn
import triton
import triton.language as tl

@triton.jit
def hist_kernel(x_ptr, out_ptr, n, TOP, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = offs < n
    x = tl.load(x_ptr + offs, mask=m, other=0)
    tl.atomic_add(out_ptr + x, tl.full((BLOCK,), 1, tl.int64), mask=m & (offs % 512 != 511))

class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins
        self.top = None
    def forward(self, idx):
        if self.top is None:
            self.top = int(idx.max())
        out = torch.zeros(self.bins, dtype=torch.int64, device=idx.device)
        n = idx.numel()
        hist_kernel[(triton.cdiv(n, 1024),)](idx, out, n, self.top, BLOCK=1024)
        return out
