"""Convolves by Fourier transforms.

mechanism: Errors are as large everywhere as where the outputs are largest.
problem: long_convolution
expected: correct
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels, length):
        super().__init__()
        self.filters = nn.Parameter(torch.randn(channels, 1, length) / math.sqrt(length))

    def forward(self, x):
        length = x.shape[-1]
        spectrum = torch.fft.rfft(x, 2 * length) * torch.fft.rfft(self.filters[:, 0], 2 * length)
        return torch.fft.irfft(spectrum, 2 * length)[..., :length]
