"""AddNorm of decoder.py in Triton: one program adds and normalises one row."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def add_norm(x, residual, weight, y, total, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    inside = at < columns
    dtype = y.dtype.element_ty
    added = tl.load(x + row + at, mask=inside, other=0.0).to(tl.float32)
    added += tl.load(residual + row + at, mask=inside, other=0.0).to(tl.float32)
    rounded = added.to(dtype)  # as in the reference
    tl.store(total + row + at, rounded, mask=inside)
    values = rounded.to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / columns + 1e-6)
    normed = (values * scale).to(dtype).to(tl.float32)
    weights = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row + at, (normed * weights).to(dtype), mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH, dtype=torch.bfloat16))

    def forward(self, x, residual):
        x, residual = x.contiguous(), residual.contiguous()
        y, total = torch.empty_like(x), torch.empty_like(x)
        columns = x.shape[-1]
        block = triton.next_power_of_2(columns)
        add_norm[(x.numel() // columns,)](x, residual, self.weight, y, total, columns, BLOCK=block, num_warps=8)
        return y, total


WIDTH = 2048
