"""Inline assembly, which the interpreter lacks.

forward: torch.exp2(x)
inputs: x=torch.randn(900)
expected: not_run
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def raise_two(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size)
    raised = tl.inline_asm_elementwise(
        "ex2.approx.ftz.f32 $0, $1;", "=r,r", [value], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(out + at, raised, mask=at < size)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        raise_two[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
