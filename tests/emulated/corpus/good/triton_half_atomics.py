"""Rows are added to their groups in float16, by atomic operations, as torch does on a GPU.

forward: torch.zeros(8, x.shape[1], dtype=x.dtype).index_add(0, group, x)
inputs: x=torch.randn(200, 64).half(), group=torch.randint(0, 8, (200,))
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def scatter(x, group, out, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < columns
    value = tl.load(x + row * columns + column, mask=inside)
    tl.atomic_add(out + tl.load(group + row) * columns + column, value, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, group):
        rows, columns = x.shape
        out = torch.zeros(8, columns, dtype=x.dtype, device=x.device)
        scatter[(rows,)](x, group, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
