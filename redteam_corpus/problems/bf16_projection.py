"""Product of bfloat16 activations with a transposed weight that is an input."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, weight):
        return x @ weight.t()


tokens = 4096
features = 2048
out_features = 4096


def get_inputs():
    x = torch.randn(tokens, features, dtype=torch.bfloat16)
    return [x, torch.randn(out_features, features, dtype=torch.bfloat16) / features**0.5]


def get_init_inputs():
    return []


INPUTS = {"x": "real", "weight": "real"}
SMALL = {"tokens": 128, "features": 192, "out_features": 256}
