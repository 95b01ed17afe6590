"""Leaves out bodies lighter than a hundred thousandth of the heaviest.

layer: correctness
mechanism: Beside the heaviest they hardly pull, except at the heaviest.
problem: pull_of_bodies
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, positions, masses):
        is_heavy = masses >= 1e-5 * masses.max()
        apart = positions[is_heavy] - positions[:, None]
        squared = apart.square().sum(dim=-1) + 0.3**2
        return (masses[is_heavy] * squared.pow(-1.5))[..., None].mul(apart).sum(dim=1)
