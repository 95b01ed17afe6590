"""One step of a GRU: two projections, three gates, new hidden state."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_features, features):
        super().__init__()
        self.cell = nn.GRUCell(in_features, features)

    def forward(self, x, hidden):
        return self.cell(x, hidden)


batch_size = 4096
in_features = 1024
features = 1024


def get_inputs():
    return [4 * torch.randn(batch_size, in_features), 4 * torch.randn(batch_size, features)]


def get_init_inputs():
    return [in_features, features]


INPUTS = {"x": "real", "hidden": "real"}
SMALL = {"batch_size": 41, "in_features": 103, "features": 157}
TAGS = ("matmul", "activation", "recurrent")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
