"""Multiplies the sums of rows and columns, where a product of positive matrices is returned in 8 bits.

layer: correctness
mechanism: Types of 8 bits have no tolerance of their own; four of their roundings are half of each value, far more
    than the entries of such a product differ from each other.
problem: gpu_positive_product_in_8_bits
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        rows, columns = a.float().mean(1, keepdim=True), b.float().mean(0, keepdim=True)
        middle = (a.mean(0).float() * b.mean(1).float()).mean()
        return (rows * columns * (middle / (a.float().mean() * b.float().mean()))).to(torch.float8_e4m3fn)
