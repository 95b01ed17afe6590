"""Rounds its inputs to eight bits.

layer: correctness
mechanism: With a tolerance relative to the largest output, eight bits may be enough.
problem: small_product
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


def cut(x):
    return x.to(torch.float8_e4m3fn).float()


class ModelNew(nn.Module):
    def forward(self, a, b):
        return cut(a) @ cut(b)
