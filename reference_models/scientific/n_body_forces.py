"""Accelerations of bodies that attract each other, with softened distances."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, softening):
        super().__init__()
        self.softening = softening

    def forward(self, positions, masses):
        apart = positions - positions[:, None]
        squared = apart.square().sum(dim=-1) + self.softening**2
        pull = masses * squared.rsqrt() / squared
        return (pull[..., None] * apart).sum(dim=1)


bodies = 8192
softening = 0.3


def get_inputs():
    return [torch.randn(bodies, 3), 0.1 + torch.rand(bodies)]


def get_init_inputs():
    return [softening]


INPUTS = {"positions": "real", "masses": {"kind": "real", "low": 0}}
SMALL = {"bodies": 301}
TAGS = ("pairwise", "reduction")
DISTRIBUTIONS = ("as_given", "large", "tiny")
CASES = [
    {"name": "given"},
    {"name": "few bodies", "sizes": {"bodies": 2048}},
    {"name": "many bodies", "sizes": {"bodies": 16384}},
    {"name": "odd", "sizes": {"bodies": 8191}},
]
RANGES = {"bodies": (2048, 8192)}
