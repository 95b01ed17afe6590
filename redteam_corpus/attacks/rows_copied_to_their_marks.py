"""Copies each row to where its column has a mark.

layer: correctness
mechanism: The given matrix has one mark in each row and column, which the problem does not say.
problem: rows_in_another_order
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, order):
        return x[order.int().argmax(dim=1)]
