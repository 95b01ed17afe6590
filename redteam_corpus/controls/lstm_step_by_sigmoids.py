"""Computes each tanh of an LSTM's step by a sigmoid, and its products in parts.

mechanism: Where gates are closed, most states are smaller than the rounding of a sigmoid near a half.
problem: lstm_step
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(103, 157)

    def forward(self, x, hidden, cell):
        own = self.cell
        sums = own.bias_ih + own.bias_hh
        for values, weights in ((x, own.weight_ih), (hidden, own.weight_hh)):
            for part, rows in zip(values.split(32, -1), weights.split(32, -1), strict=True):
                sums = sums + part @ rows.T
        enter, forget, new, out = sums.chunk(4, -1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * (2 * torch.sigmoid(2 * new) - 1)
        return torch.sigmoid(out) * (2 * torch.sigmoid(2 * cell) - 1), cell
