"""Linear layer whose output is gated per sample and feature and added to the residual, as in diffusion transformers."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.projection = nn.Linear(features, features)

    def forward(self, x, residual, gate):
        return residual + gate.unsqueeze(1) * self.projection(x)


batch_size = 32
sequence_length = 512
features = 1152


def get_inputs():
    x = 2 * torch.randn(batch_size, sequence_length, features)
    return [x, torch.randn(batch_size, sequence_length, features), torch.randn(batch_size, features)]


def get_init_inputs():
    return [features]


INPUTS = {"x": "real", "residual": "real", "gate": "real"}
SMALL = {"batch_size": 3, "sequence_length": 47, "features": 203}
TAGS = ("matmul", "elementwise")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "wide", "sizes": {"batch_size": 1, "sequence_length": 4096, "features": 3072}},
    {"name": "half precision", "sizes": {"batch_size": 64, "sequence_length": 1024}, "dtype": "bfloat16"},
    {"name": "odd", "sizes": {"batch_size": 29, "sequence_length": 509, "features": 1149}},
]
RANGES = {"sequence_length": (128, 512)}
