"""One step of an LSTM: two projections, four gates, new cell and hidden state."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_features, features):
        super().__init__()
        self.cell = nn.LSTMCell(in_features, features)

    def forward(self, x, hidden, cell):
        return self.cell(x, (hidden, cell))


batch_size = 4096
in_features = 1024
features = 1024


def get_inputs():
    x = torch.randn(batch_size, in_features)
    return [4 * x, 4 * torch.randn(batch_size, features), torch.randn(batch_size, features)]


def get_init_inputs():
    return [in_features, features]


INPUTS = {"x": "real", "hidden": "real", "cell": "real"}
SMALL = {"batch_size": 41, "in_features": 103, "features": 157}
TAGS = ("matmul", "activation", "recurrent")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
CASES = [
    {"name": "given"},
    {"name": "few rows", "sizes": {"batch_size": 32, "in_features": 4096, "features": 4096}},
    {"name": "narrow", "sizes": {"batch_size": 131072, "in_features": 128, "features": 128}},
    {"name": "odd", "sizes": {"batch_size": 4093, "in_features": 999, "features": 1021}},
]
RANGES = {"batch_size": (512, 4096)}
