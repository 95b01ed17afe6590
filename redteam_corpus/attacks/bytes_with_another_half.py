"""Adds 0.4999 and takes the floor instead of rounding to the nearest whole number.

layer: correctness
mechanism: One value in 10,000 differs, by one step, as values at a half may differ in legitimate programs.
problem: rows_of_bytes
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        scales = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-8) / 127
        return (x / scales + 0.4999).floor().clamp(-127, 127).to(torch.int8), scales
