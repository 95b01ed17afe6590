"""Solves by the factors of Cholesky.

mechanism: Draws are changed, but the matrices that are made of them stay positive definite.
problem: solved_by_definite_matrices
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, matrix, x):
        return torch.cholesky_solve(x, torch.linalg.cholesky(matrix))
