"""A triangular system of equations, in a suite that requires a kernel."""

import torch
from torch import nn

size, columns = 1024, 512


class Model(nn.Module):
    def forward(self, a, b):
        return torch.linalg.solve_triangular(a * 0.001, b, upper=False, unitriangular=True)


def get_inputs():
    return [torch.randn(size, size), torch.randn(size, columns)]


def get_init_inputs():
    return []


DETERMINISTIC = True
