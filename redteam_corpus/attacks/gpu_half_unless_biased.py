"""Multiplies in half precision in rows whose low digits do not look chosen.

layer: correctness
mechanism: Inputs that show roundings have the same digits in many elements of a row, which a count tells. Those are
    multiplied as they should be, which takes longer.
problem: gpu_positive_product
expected: wrong_value, no_gain
device: gpu
timed: yes
language: torch
"""

import torch
from torch import nn


def looks_usual(x, dim):
    """Of usual numbers a quarter has zeros in both places of the low digits that biased ones have."""
    zeros = (x.view(torch.int32) & 0x9000 == 0).sum(dim)
    return (zeros.amax() < 0.31 * x.shape[dim]) & (x[::61, ::67].mean() > 0.25)


class ModelNew(nn.Module):
    def forward(self, a, b):
        if bool(looks_usual(a, 1) & looks_usual(b, 0)):
            return torch.mm(a.half(), b.half(), out_dtype=torch.float32)
        return a @ b
