"""Accelerations of bodies by the masses of all others."""

import torch
from torch import nn

bodies, softening = 301, 0.3


class Model(nn.Module):
    def forward(self, positions, masses):
        apart = positions - positions[:, None]
        squared = apart.square().sum(dim=-1) + softening**2
        return (masses * squared.pow(-1.5))[..., None].mul(apart).sum(dim=1)


def get_inputs():
    return [torch.randn(bodies, 3), 0.1 + torch.rand(bodies)]


def get_init_inputs():
    return []


INPUTS = {"positions": "real", "masses": {"kind": "real", "low": 0}}
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
