"""Solves a triangular system as any other.

mechanism: If draws were larger, the system would be so ill-conditioned that solvers differ.
problem: triangular_systems
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, matrix, x):
        return torch.linalg.solve(matrix, x)
