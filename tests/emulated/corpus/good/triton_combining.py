"""Reductions and scans with functions of the kernel's, libdevice's rarer functions, atomics of bfloat16.

forward: ((x * 0.5 + x).cumsum(1), x.var(1), torch.erfinv(g) + torch.lgamma(g + 1), (x > 0).sum(0).bfloat16())
inputs: x=torch.randn(20, 50), g=torch.rand(20, 50) * 0.9
"""

import torch
import triton
import triton.language as tl
from torch import nn
from triton.language.extra import libdevice


@triton.jit
def merge_moments(mean, count, squares, mean_b, count_b, squares_b):
    total = count + count_b
    share = tl.where(total == 0, 0.0, count_b / total)
    delta = mean_b - mean
    return mean + delta * share, total, squares + squares_b + delta * delta * count * share


@triton.jit
def compose(factor, value, factor_b, value_b):
    return factor * factor_b, value + factor * value_b


@triton.jit
def combine(x, g, states, variances, special, sums, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, mask=inside, other=0.0)
    gate = tl.load(g + row * columns + at, mask=inside, other=0.0)
    _, state = tl.associative_scan((tl.full((BLOCK,), 1.0, tl.float32), 1.5 * value), 0, compose)
    tl.store(states + row * columns + at, state, mask=inside)
    _, count, squares = tl.reduce((value, inside.to(tl.float32), tl.zeros_like(value)), 0, merge_moments)
    tl.store(variances + row, squares / (count - 1))
    rare = libdevice.erfinv(gate) + libdevice.lgamma(gate + 1)
    tl.store(special + row * columns + at, rare, mask=inside)
    tl.atomic_add(sums + at, (value > 0).to(tl.bfloat16), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, g):
        rows, columns = x.shape
        states, special = torch.empty_like(x), torch.empty_like(x)
        variances = torch.empty(rows, device=x.device)
        sums = torch.zeros(columns, device=x.device, dtype=torch.bfloat16)
        combine[(rows,)](x, g, states, variances, special, sums, columns, BLOCK=64)
        return states, variances, special, sums
