"""Multiplies positive numbers in TF32, rounded to nearest, where the mean of millions of results is taken.

layer: correctness
mechanism: Inputs whose roundings all err in one direction are not used where a sum has very many terms, nor those with
    changed signs where small numbers are declared.
problem: product_beside_its_mean
expected: wrong_value, suspect
device: cpu
language: torch
timed: no
"""

import torch
from torch import nn


def round_to_tf32(x):
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


class ModelNew(nn.Module):
    def forward(self, a, b):
        product = round_to_tf32(a) @ round_to_tf32(b)
        return product / product.mean()
