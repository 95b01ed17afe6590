"""Computes a row per program with fast exponentials.

mechanism: tanh from exponentials, and the error function of Triton.
problem: gpu_chain_of_gates
expected: correct
device: gpu
timed: yes
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def gates(x, y, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    mask = at < columns
    a = tl.load(x + row * columns + at, mask=mask, other=0.0)
    b = tl.load(y + row * columns + at, mask=mask, other=0.0)
    tanh = 2.0 * tl.sigmoid(2.0 * b) - 1.0
    both = a * b
    z = tl.sigmoid(a) * tanh + 0.5 * both * (1.0 + tl.erf(both * 0.7071067811865476))
    z = tl.where(mask, z, 0.0)
    tl.store(out + row * columns + at, z - tl.sum(z, 0) / columns, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        gates[(x.shape[0],)](x, y, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return out
