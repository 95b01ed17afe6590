"""Projection to two halves, and the product of one with the GELU of the other, as in diffusion transformers."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden_features):
        super().__init__()
        self.projection = nn.Linear(features, 2 * hidden_features)

    def forward(self, x):
        value, gate = self.projection(x).chunk(2, dim=-1)
        return value * nn.functional.gelu(gate)


tokens = 8192
features = 1024
hidden_features = 4096


def get_inputs():
    return [2 * torch.randn(tokens, features)]


def get_init_inputs():
    return [features, hidden_features]


SMALL = {"tokens": 83, "features": 203, "hidden_features": 307}
TAGS = ("matmul", "activation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
