"""The elementwise part of an LSTM, also of large values."""

import torch
from torch import nn

batch, features = 41, 157


class Model(nn.Module):
    def forward(self, gates, cell):
        into, forget, new, out = gates.chunk(4, dim=1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(into) * torch.tanh(new)
        return torch.sigmoid(out) * torch.tanh(cell), cell


def get_inputs():
    return [2 * torch.randn(batch, 4 * features), torch.randn(batch, features)]


def get_init_inputs():
    return []


INPUTS = {"gates": "real", "cell": "real"}
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
