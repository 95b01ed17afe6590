"""Adds up in float16 what it multiplied in float32.

layer: correctness
mechanism: Inputs and outputs are in full precision; only what lies between is not.
problem: small_product
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.zeros(a.shape[0], b.shape[1], dtype=torch.float16)
        for start in range(0, a.shape[1], 16):
            out += (a[:, start : start + 16] @ b[start : start + 16]).half()
        return out.float()
