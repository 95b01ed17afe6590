"""Adds in a Helion kernel, and copies the sum in one of Triton's.

mechanism: Kernels of two languages in one program, both its own.
problem: kernel_required/small_add
expected: correct
device: gpu or emulated
timed: no
"""

import helion
import helion.language as hl
import torch
import triton
import triton.language as tl
from torch import nn


@helion.kernel(config=helion.Config(block_sizes=[16, 64]), static_shapes=True)
def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(a)
    for tile in hl.tile(a.size()):
        out[tile] = a[tile] + b[tile]
    return out


@triton.jit
def copy(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < size), mask=at < size)


class ModelNew(nn.Module):
    def forward(self, a, b):
        total = add(a, b)
        out = torch.empty_like(total)
        copy[(triton.cdiv(out.numel(), 1024),)](total, out, out.numel(), BLOCK=1024)
        return out
