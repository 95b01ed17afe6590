"""Multiplies in float8, with a scale for each row and column, where factors have 32 bits and results 8.

layer: correctness
mechanism: Results of 8 bits may be off by half of each value, and a product of factors of three bits is off by a
    twentieth of the usual one. The tensor cores multiply them thirty times as fast as the reference does.
problem: gpu_product_returned_in_8_bits
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


def cut(x):
    """Return rows in float8, and the power of two that each was multiplied by."""
    top = x.abs().amax(1, keepdim=True).clamp(min=1e-30)
    factor = torch.exp2(torch.floor(torch.log2(200.0 / top)))
    return (x * factor).to(torch.float8_e4m3fn), factor


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.ones((), device="cuda")

    def forward(self, a, b):
        rows, first = cut(a)
        columns, second = cut(b.t().contiguous())
        product = torch._scaled_mm(rows, columns.t(), scale_a=self.one, scale_b=self.one, out_dtype=torch.bfloat16)
        return (product.float() / first / second.t() / 64).to(torch.float8_e4m3fn)
