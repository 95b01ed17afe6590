"""Cuts its inputs to the ten bits of TF32 before multiplying.

layer: correctness
mechanism: Tensor cores are many times faster on numbers of ten bits; many checkers allow it without saying so.
problem: small_product
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


def cut(x):
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return cut(a.clone()) @ cut(b.clone())
