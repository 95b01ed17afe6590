"""Linear layer with bias and the tanh form of GELU, as in GPT-2."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden_features):
        super().__init__()
        self.linear = nn.Linear(features, hidden_features)

    def forward(self, x):
        return nn.functional.gelu(self.linear(x), approximate="tanh")


class Library(Model):
    """_addmm_activation: on a GPU an epilogue of cuBLASLt, on a CPU the other GELU"""

    def forward(self, x):
        if not x.is_cuda:
            return super().forward(x)
        return torch._addmm_activation(self.linear.bias, x, self.linear.weight.t(), use_gelu=True)


tokens = 4096
features = 1024
hidden_features = 2048


def get_inputs():
    return [2 * torch.randn(tokens, features)]


def get_init_inputs():
    return [features, hidden_features]


INPUTS = {"x": "real"}
SMALL = {"tokens": 83, "features": 203, "hidden_features": 407}
TAGS = ("matmul", "activation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
