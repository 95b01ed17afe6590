"""Multiplies values by the sinc of their offsets."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, values, offsets):
        return values * torch.sinc(offsets)


def get_inputs():
    return [torch.randn(64, 64), torch.randn(64, 64) * 2]


def get_init_inputs():
    return []


INPUTS = {"values": "real", "offsets": "real"}
BACKWARD = True
