"""Sums long rows block by block.

forward: x.sum(dim=1)
inputs: x=torch.randn(19, 777)
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def row_sum(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * columns + at, mask=at < columns, other=0.0)
    tl.store(out + row, tl.sum(total, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        row_sum[(x.shape[0],)](x, out, x.shape[1], BLOCK=128)
        return out
