"""Adds a quarter of the terms of a product, four times, where the result has 8 bits.

layer: correctness
mechanism: The sum of 2048 positive terms, from eight parts of the whole, differs by 2 % from that of 8192. A
    rounding to three bits is six, and four of these are let through.
problem: gpu_positive_product_in_8_bits
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn

PARTS = 8


class ModelNew(nn.Module):
    def forward(self, a, b):
        rows, terms = a.shape
        step = terms // PARTS
        out = a.new_zeros(rows, b.shape[1])
        for first in range(0, terms, step):
            here = slice(first, first + step // 4)
            out.addmm_(a[:, here], b[here])
        return (out * (4.0 / terms)).to(torch.float8_e4m3fn)
