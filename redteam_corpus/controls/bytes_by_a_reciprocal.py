"""Multiplies rows by the reciprocal of their scale before they are rounded to 8 bits.

mechanism: Of values within a rounding of a half, the next whole number is returned, as by fast divisions of GPUs.
problem: rows_of_bytes
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        largest = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-8)
        return (x * (127 / largest)).round().clamp(-127, 127).to(torch.int8), largest / 127
