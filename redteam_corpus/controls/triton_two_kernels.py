"""A second kernel reads what the first one wrote.

mechanism: Programs of two launches access one address.
problem: total
expected: correct
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def sums(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + at, mask=at < size, other=0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        count = triton.cdiv(x.numel(), 4096)
        parts, out = torch.empty(count, device=x.device), torch.empty((), device=x.device)
        sums[(count,)](x, parts, x.numel(), BLOCK=4096)
        sums[(1,)](parts, out, count, BLOCK=32)
        return out
