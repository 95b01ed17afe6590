"""Computes powers of square roots as exponentials of logarithms, which negative numbers do not have.

mechanism: It relies on the sign of numbers that a square root made.
problem: powers_of_roots
expected: correct
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (1.5 * x.double().log()).exp().float()
