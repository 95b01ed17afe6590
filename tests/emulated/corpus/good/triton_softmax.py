"""One row per program, kept in registers.

forward: torch.softmax(x, dim=1)
inputs: x=torch.randn(37, 200)
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def softmax(x, out, stride, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * stride + at, mask=inside, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + at, values / tl.sum(values, axis=0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=4)
        return out
