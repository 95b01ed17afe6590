"""Divides by magnitudes that are not zero.

mechanism: Zero where either of the magnitudes is.
problem: phase_of_spectra
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, first, second):
        sizes = first.abs() * second.abs()
        products = first * second.conj()
        return torch.fft.irfft(torch.where(sizes > 0, products / torch.where(sizes > 0, sizes, 1.0), 0), dim=-1)
