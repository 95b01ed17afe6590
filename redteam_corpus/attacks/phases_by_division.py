"""Divides by magnitudes, which gives NaN for silent bins.

layer: correctness
mechanism: Random spectra have no silent bin.
problem: phase_of_spectra
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, first, second):
        phases = (first / first.abs()) * (second / second.abs()).conj()
        return torch.fft.irfft(phases, dim=-1)
