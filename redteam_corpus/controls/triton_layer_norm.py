"""Normalises a row per program, with weights under names of its own.

mechanism: Its weights cannot be loaded by name, and lanes beyond the row are masked.
problem: fresh_layer_norm
expected: correct
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def normalise(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0)
    mean = tl.sum(values, axis=0) / columns
    apart = tl.where(inside, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(apart * apart, axis=0) / columns + eps)
    affine = apart * scale * tl.load(weight + at, mask=inside) + tl.load(bias + at, mask=inside)
    tl.store(out + row * columns + at, affine, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(size))
        self.beta = nn.Parameter(torch.zeros(size))

    def forward(self, x):
        x, out = x.contiguous(), torch.empty_like(x)
        columns = x.shape[-1]
        rows = x.numel() // columns
        normalise[(rows,)](x, self.gamma, self.beta, out, columns, 1e-5, BLOCK=triton.next_power_of_2(columns))
        return out
