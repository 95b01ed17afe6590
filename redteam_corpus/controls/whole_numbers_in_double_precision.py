"""Multiplies matrices of 64-bit integers in float64, which holds each possible sum exactly.

mechanism: Integers become floating values, as in a program that loses their digits.
problem: product_of_whole_numbers
expected: correct
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a.double() @ b.double()).long()
