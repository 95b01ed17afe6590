"""Squares the matrix of distances in the algebra of minimum and sum.

mechanism: It needs a square matrix, as the problem's only size makes it.
problem: paths_of_any_number_of_nodes
expected: correct
device: cpu
timed: no
language: torch
"""

from torch import nn

class ModelNew(nn.Module):
    def forward(self, w):
        d = w.clone().fill_diagonal_(0)
        reach = 1
        while reach < w.shape[0] - 1:
            d = (d[:, :, None] + d[None]).amin(1)
            reach *= 2
        return d
