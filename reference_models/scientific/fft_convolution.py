"""Causal convolution of long signals with filters of the same length, through the FFT, plus a skip connection."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, length):
        super().__init__()
        decay = torch.exp(-8 * torch.arange(length) / length)
        self.filters = nn.Parameter(torch.randn(channels, length) * decay)
        self.skip = nn.Parameter(4 * torch.randn(channels, 1))

    def forward(self, signal):
        length = signal.size(-1)
        spectrum = torch.fft.rfft(signal, 2 * length) * torch.fft.rfft(self.filters, 2 * length)
        return torch.fft.irfft(spectrum, 2 * length)[..., :length] + self.skip * signal


batch_size = 16
channels = 256
length = 8192


def get_inputs():
    return [torch.randn(batch_size, channels, length)]


def get_init_inputs():
    return [channels, length]


INPUTS = {"signal": "real"}
SMALL = {"batch_size": 3, "channels": 7, "length": 1021}
TAGS = ("fft", "fusion")
DISTRIBUTIONS = ("as_given", "uniform", "large", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "long", "sizes": {"batch_size": 2, "channels": 128, "length": 131072}},
    {"name": "short", "sizes": {"batch_size": 128, "length": 1024}},
    {"name": "odd", "sizes": {"batch_size": 13, "channels": 251, "length": 8191}},
]
RANGES = {"length": (2000, 8192)}
