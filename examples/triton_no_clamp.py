"""Wrong: a row of zeros is divided by zero."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def scale_norm(x, scale, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row + at, mask=inside, other=0.0)
    norm = tl.sqrt(tl.sum(values * values, axis=0))
    factor = tl.load(scale) / norm
    tl.store(y + row + at, values * factor, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(start))

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows, columns = x.shape
        scale_norm[(rows,)](x, self.scale, y, columns, BLOCK=triton.next_power_of_2(columns))
        return y
