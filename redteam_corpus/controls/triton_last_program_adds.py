"""The last program adds the parts of all others, ordered by an atomic counter.

mechanism: It reads what other programs wrote in the same launch.
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
def total(x, parts, counter, out, size, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(parts + tl.program_id(0), tl.sum(tl.load(x + at, mask=at < size, other=0.0), axis=0))
    if tl.atomic_add(counter, 1) == COUNT - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, COUNT)), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        block = triton.next_power_of_2(triton.cdiv(x.numel(), 16))
        parts, out = torch.empty(16, device=x.device), torch.empty((), device=x.device)
        counter = torch.zeros((), dtype=torch.int32, device=x.device)
        total[(16,)](x, parts, counter, out, x.numel(), COUNT=16, BLOCK=block)
        return out
