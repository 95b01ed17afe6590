"""Runs an LSTM step by step, with the products of all inputs made at once.

mechanism: Its weights come from a layer that is no part of it, under names of its own, transposed.
problem: last_of_lstm
expected: correct
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, hidden, layers, classes):
        super().__init__()
        lstm = nn.LSTM(width, hidden, layers, batch_first=True)
        self.layers = layers
        for layer in range(layers):
            self.register_buffer(f"w{layer}", getattr(lstm, f"weight_ih_l{layer}").detach().t().contiguous())
            self.register_buffer(f"u{layer}", getattr(lstm, f"weight_hh_l{layer}").detach().t().contiguous())
            bias = getattr(lstm, f"bias_ih_l{layer}") + getattr(lstm, f"bias_hh_l{layer}")
            self.register_buffer(f"b{layer}", bias.detach())
        self.fc = nn.Linear(hidden, classes)

    def forward(self, x):
        x = x.transpose(0, 1)
        for layer in range(self.layers):
            given = x @ getattr(self, f"w{layer}") + getattr(self, f"b{layer}")
            u = getattr(self, f"u{layer}")
            h = c = x.new_zeros(x.shape[1], u.shape[0])
            outputs = []
            for row in given:
                i, f, g, o = (row + h @ u).chunk(4, 1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
                outputs.append(h)
            x = torch.stack(outputs)
        return self.fc(x[-1])
