"""A product of float32 in every input precision but TF32, which the problem does not allow.

forward: torch.stack([a @ b] * 4)
inputs: a=torch.randn(32, 64), b=torch.randn(64, 32)
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def multiply(a, b, out, K: tl.constexpr, SIZE: tl.constexpr, PRECISION: tl.constexpr):
    row, column, k = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :], tl.arange(0, K)
    left, right = tl.load(a + row * K + k[None, :]), tl.load(b + k[:, None] * SIZE + column)
    tl.store(out + row * SIZE + column, tl.dot(left, right, input_precision=PRECISION))


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(4, 32, 32, device=a.device)
        for place, precision in zip(out, ("ieee", "tf32x3", "bf16x3", "bf16x6"), strict=True):
            multiply[(1,)](a, b, place, K=64, SIZE=32, PRECISION=precision)
        return out
