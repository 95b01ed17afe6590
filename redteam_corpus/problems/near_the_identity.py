"""Solutions of triangular systems near the identity."""

import torch
from torch import nn

systems, rows, columns = 16, 64, 32


class Model(nn.Module):
    def forward(self, k, v):
        matrix = torch.eye(rows, dtype=k.dtype) + (k @ k.mT).tril(-1)
        return torch.linalg.solve_triangular(matrix, v, upper=False)


def get_inputs():
    return [torch.randn(systems, rows, columns) * 0.1, torch.randn(systems, rows, columns)]


def get_init_inputs():
    return []
