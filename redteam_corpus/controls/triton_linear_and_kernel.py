"""torch multiplies, and a kernel adds the bias and clips.

mechanism: Most of the work is torch's.
problem: linear_relu
expected: correct
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def bias_relu(x, bias, size, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size) + tl.load(bias + at % columns, mask=at < size)
    tl.store(x + at, tl.maximum(value, 0.0), mask=at < size)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        out = x @ self.linear.weight.t()
        bias_relu[(triton.cdiv(out.numel(), 256),)](out, self.linear.bias, out.numel(), out.shape[1], BLOCK=256)
        return out
