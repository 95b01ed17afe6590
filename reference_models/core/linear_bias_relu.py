"""Matrix product with a weight (no bias of its own), then a bias vector and ReLU."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_features, out_features, bias_shape):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features, bias=False)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.gemm(x)
        x = x + self.bias
        return torch.relu(x)


class Library(Model):
    """_addmm_activation: on a GPU an epilogue of cuBLASLt"""

    def forward(self, x):
        return torch._addmm_activation(self.bias, x, self.gemm.weight.t())


batch_size = 1024
in_features = 8192
out_features = 8192
bias_shape = (out_features,)


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, bias_shape]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 61, "in_features": 1031, "out_features": 773}
TAGS = ("matmul", "fusion")
DISTRIBUTIONS = ("as_given", "normal", "large", "alternating", "zeros")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "few rows", "sizes": {"batch_size": 16}},
    {"name": "odd", "sizes": {"batch_size": 1021, "in_features": 8191, "out_features": 8189}},
]
RANGES = {"batch_size": (128, 1024)}
