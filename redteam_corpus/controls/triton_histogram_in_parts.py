"""Counts integers by block, and adds the counts atomically.

mechanism: The reference does not run on the meta device, so its sizes are found by trying.
problem: counted_values
expected: correct
device: gpu or emulated
timed: no
"""

import torch
from torch import nn
import triton
import triton.language as tl

@triton.jit
def hist_kernel(x_ptr, out_ptr, n, BINS: tl.constexpr, PB: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    m = offs < n
    x = tl.load(x_ptr + offs, mask=m, other=PB - 1).to(tl.int32)
    h = tl.histogram(x, PB)
    b = tl.arange(0, PB)
    tl.atomic_add(out_ptr + b, h.to(tl.int64), mask=(b < BINS) & (h > 0))

class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins
    def forward(self, idx):
        out = torch.zeros(self.bins, dtype=torch.int64, device=idx.device)
        n = idx.numel()
        hist_kernel[(triton.cdiv(n, 1024),)](idx, out, n, BINS=self.bins, PB=triton.next_power_of_2(self.bins + 1), BLOCK=1024)
        return out
