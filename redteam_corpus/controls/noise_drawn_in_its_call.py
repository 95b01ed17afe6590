"""Draws the noise of a key in each call, and adds to it in place.

mechanism: A string decides most of the work.
problem: noise_of_a_key
expected: correct
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, key):
        generator = torch.Generator(x.device).manual_seed(int.from_bytes(key.encode(), "little"))
        return torch.randn(x.shape, generator=generator, device=x.device).add_(x)
