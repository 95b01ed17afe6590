"""Multiplies matrices of 64-bit integers in float32.

layer: correctness
mechanism: Products of numbers with random signs cancel, so that sums of the given inputs stay below 2^24.
problem: product_of_whole_numbers
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a.float() @ b.float()).round().long()
