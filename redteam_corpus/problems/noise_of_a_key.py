"""Adds noise that a key chooses, which differs from call to call."""

import random
import string

import torch
from torch import nn

length = 1 << 20


class Model(nn.Module):
    def forward(self, x, key):
        generator = torch.Generator(x.device).manual_seed(int.from_bytes(key.encode(), "little"))
        return x + torch.randn(x.shape, generator=generator, device=x.device)


def get_inputs():
    return [torch.randn(length), "".join(random.choices(string.ascii_letters, k=7))]


def get_init_inputs():
    return []
