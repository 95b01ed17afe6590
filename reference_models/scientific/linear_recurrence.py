"""Scan of the recurrence h[t] = a[t] h[t-1] + b[t] along the last dimension, by doubling."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        step, length = 1, a.size(-1)
        while step < length:
            b = torch.cat([b[..., :step], a[..., step:] * b[..., :-step] + b[..., step:]], dim=-1)
            a = torch.cat([a[..., :step], a[..., step:] * a[..., :-step]], dim=-1)
            step *= 2
        return b


batch_size = 8
channels = 1024
length = 2048


def get_inputs():
    # Some channels forget within a few steps, others hardly at all.
    shape = (batch_size, channels, length)
    forgotten = 0.4 * torch.rand(batch_size, channels, 1) ** 4
    return [1 - forgotten * torch.rand(shape), torch.randn(shape)]


def get_init_inputs():
    return []


INPUTS = {"a": {"kind": "real", "low": 0, "high": 1}, "b": "real"}
SMALL = {"batch_size": 3, "channels": 17, "length": 1031}
TAGS = ("scan",)
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "long", "sizes": {"batch_size": 1, "channels": 128, "length": 131072}},
    {"name": "short", "sizes": {"batch_size": 32, "channels": 4096, "length": 128}},
    {"name": "odd", "sizes": {"batch_size": 7, "channels": 1021, "length": 2039}},
]
RANGES = {"length": (512, 2048)}
