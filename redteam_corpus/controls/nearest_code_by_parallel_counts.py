"""Counts the bits of all codes in parallel.

mechanism: Computes with 64-bit integers that overflow.
problem: nearest_code_by_bits
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, query, code):
        x = query[:, None] ^ code[None]
        x = x - ((x >> 1) & 0x5555555555555555)
        x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
        x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
        d = ((x * 0x0101010101010101) >> 56) & 127
        best = (d * 64 + torch.arange(64)).amin(-1)
        return best >> 6, best & 63
