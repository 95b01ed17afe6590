"""Adds in a kernel of Triton that a function makes, with a helper, constants and values of the function around it.

mechanism: Its text alone is no program: what it names is spread over the file.
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
from triton.language.extra import libdevice

ZERO = tl.constexpr(0.0)
SIZES = (512, 1024)


@triton.jit
def add_exactly(left, right, shift: tl.constexpr = 0.0):
    """Rounds once
    and to nearest."""
    return libdevice.fma_rn(left, 1.0, right) + shift


def make_kernel(size):
    """A kernel like those of torch's libraries by its name."""
    block = tl.constexpr(size)

    @triton.jit
    def gemm_like_add(a, b, out, count, ACCUMULATOR: tl.constexpr = tl.float32):
        places = tl.program_id(0) * block + tl.arange(0, block)
        inside = places < count
        left, right = tl.load(a + places, mask=inside), tl.load(b + places, mask=inside)
        tl.store(out + places, add_exactly(left.to(ACCUMULATOR), right, ZERO), mask=inside)

    return gemm_like_add


KERNELS = {size: make_kernel(size) for size in SIZES}


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        half = out.numel() // 2
        for size, part in zip(SIZES, (slice(0, half), slice(half, None)), strict=True):
            places = out.view(-1)[part]
            grid = (triton.cdiv(places.numel(), size),)
            KERNELS[size][grid](a.view(-1)[part], b.view(-1)[part], places, places.numel())
        return out
