"""Adds in a kernel of Triton that it launches in a function for torch's compiler.

mechanism: torch's compiler copies the kernel's text into a file of its own, and compiles it there.
problem: kernel_required/gpu_add
expected: correct
device: gpu
timed: yes
language: triton
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def triton_add_tiles(a, b, out, count, SIZE: tl.constexpr):
    places = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = places < count
    tl.store(out + places, tl.load(a + places, mask=inside) + tl.load(b + places, mask=inside), mask=inside)


@torch.compile
def add(a, b):
    out = torch.empty_like(a)
    triton_add_tiles[(triton.cdiv(out.numel(), 1024),)](a, b, out, out.numel(), SIZE=1024)
    return out


class ModelNew(nn.Module):
    def forward(self, a, b):
        return add(a.contiguous(), b.contiguous())
