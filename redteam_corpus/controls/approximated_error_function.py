"""Approximates erf with a polynomial, seven digits.

mechanism: Seven digits of a function that torch has to the last one.
problem: gelu
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        z = x.abs() * 0.7071067811865476
        t = 1 / (1 + 0.3275911 * z)
        p = ((((1.061405429 * t - 1.453152027) * t) + 1.421413741) * t - 0.284496736) * t + 0.254829592
        erf = 1 - p * t * torch.exp(-z * z)
        return 0.5 * x * (1 + torch.sign(x) * erf)
