"""Adds three TF32 products of positive numbers, truncated after every eight terms.

mechanism: Truncated sums, as of tensor cores, are all too small by the same share.
problem: short_positive_product
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


def cut(x):
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def add_truncated(total, part):
    exact = total.double() + part
    near = exact.float()
    return torch.where(near > exact, near.nextafter(torch.zeros_like(near)), near)


class ModelNew(nn.Module):
    def forward(self, a, b):
        (high, left), (low, right) = ((cut(x), cut(x - cut(x))) for x in (a, b))
        total = torch.zeros(a.shape[0], b.shape[1])
        for factors in ((left, low), (high, right), (high, low)):
            for one, other in zip(factors[0].split(8, 1), factors[1].split(8, 0), strict=True):
                total = add_truncated(total, one.double() @ other.double())
        return total
