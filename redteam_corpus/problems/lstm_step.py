"""One step of an LSTM, also of large inputs, which close most gates."""

import torch
from torch import nn

rows, inputs, features = 41, 103, 157


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(inputs, features)

    def forward(self, x, hidden, cell):
        return self.cell(x, (hidden, cell))


def get_inputs():
    return [4 * torch.randn(rows, inputs), 4 * torch.randn(rows, features), torch.randn(rows, features)]


def get_init_inputs():
    return []


INPUTS = {"x": "real", "hidden": "real", "cell": "real"}
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
