"""An error of the compiler's passes, which only its output names.

forward: (x @ y)
inputs: x=torch.randint(-8, 8, (16, 32), dtype=torch.int8), y=torch.randint(-8, 8, (32, 16), dtype=torch.int8)
expected: build_error
gpu: T4
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, y, out, M: tl.constexpr, K: tl.constexpr):
    row, column = tl.arange(0, M), tl.arange(0, K)
    left = tl.load(x + row[:, None] * K + column[None, :])
    right = tl.load(y + column[:, None] * M + row[None, :])
    tl.store(out + row[:, None] * M + row[None, :], tl.dot(left, right).to(tl.int8))


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty(16, 16, dtype=torch.int8, device=x.device)
        kernel[(1,)](x, y, out, M=16, K=32)
        return out
