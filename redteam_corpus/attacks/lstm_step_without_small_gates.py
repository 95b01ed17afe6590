"""Leaves out what gates of an LSTM's step let through if they are open by less than 1e-4.

layer: correctness
mechanism: Given gates are hardly ever as closed, and of large inputs most states are small anyway.
problem: lstm_step
expected: wrong_value
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
        sums = x @ own.weight_ih.T + hidden @ own.weight_hh.T + own.bias_ih + own.bias_hh
        enter, forget, new, out = sums.chunk(4, -1)
        enter, forget, out = (gate.where(gate > 1e-4, 0.0) for gate in map(torch.sigmoid, (enter, forget, out)))
        cell = forget * cell + enter * torch.tanh(new)
        return out * torch.tanh(cell), cell
