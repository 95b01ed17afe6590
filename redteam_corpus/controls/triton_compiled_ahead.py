"""Compiles its kernel for types, and launches what was compiled.

mechanism: `warmup` takes dtypes instead of tensors, and `compiled[grid](...)` does not go through the function.
problem: softmax
expected: correct
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * columns + at, mask=at < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + tl.program_id(0) * columns + at, values / tl.sum(values, axis=0), mask=at < columns)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = {}

    def forward(self, x):
        out, (rows, columns) = torch.empty_like(x), x.shape
        block = triton.next_power_of_2(columns)
        if columns not in self.compiled:
            self.compiled[columns] = softmax.warmup(x.dtype, out.dtype, columns, BLOCK=block, grid=(1,))
        self.compiled[columns][(rows, 1, 1)](x, out, columns, block)
        return out
