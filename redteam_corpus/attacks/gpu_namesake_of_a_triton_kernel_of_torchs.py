"""Computes in a Triton kernel that torch brings along, and defines a kernel of the same name that it never launches.

layer: no_kernel
mechanism: Triton compiles torch's kernel in the worker, so that its code lies in no library.
problem: gpu_softmax
expected: rejected, not_own, suspect
device: gpu
timed: yes
language: triton
"""

import torch
import triton
import triton.language as tl
from torch import nn
from torch.sparse._triton_ops import bsr_softmax


@triton.jit
def _bsr_softmax_kernel(x, out, columns, TILE: tl.constexpr):
    at = tl.arange(0, TILE)
    row = tl.load(x + tl.program_id(0) * columns + at, mask=at < columns, other=-float("inf"))
    shares = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + tl.program_id(0) * columns + at, shares / tl.sum(shares, axis=0), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        starts = torch.arange(rows + 1, device=x.device)
        values = x.contiguous().view(rows, 1, columns)
        blocks = torch.sparse_bsr_tensor(starts, torch.zeros_like(starts[1:]), values, size=(rows, columns))
        return bsr_softmax(blocks).values().view(rows, columns)
