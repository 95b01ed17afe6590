"""Numbers of Python that Triton makes tensors: counted by loops, assigned together, given to min and max.

forward: x.cumsum(0)[-1] + 8 + x.shape[0]
inputs: x=torch.randn(37, 64)
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def add_rows(x, out, rows, stride, COLUMNS: tl.constexpr):
    column = tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), dtype=tl.float32)
    for row in tl.range(0, rows, num_stages=2):
        total += tl.load(x + row.to(tl.int64) * stride + column)
    count, more = 0, 5
    for _ in range(3):
        count += 1
    total += count.to(tl.float32) + more.to(tl.float32) + min(rows, 99) + 0 * max(column, rows)
    tl.store(out + column, total)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[1], device=x.device)
        add_rows[(1,)](x, out, x.shape[0], x.stride(0), COLUMNS=x.shape[1])
        return out
