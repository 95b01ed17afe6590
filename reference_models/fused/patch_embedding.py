"""Image patches projected to tokens by a strided convolution, plus position embeddings, as in ViT."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, features, patch, tokens):
        super().__init__()
        self.projection = nn.Conv2d(channels, features, patch, stride=patch)
        self.positions = nn.Parameter(torch.randn(tokens, features))

    def forward(self, x):
        return self.projection(x).flatten(2).transpose(1, 2) + self.positions


batch_size = 256
channels = 3
patch = 16
rows = 14
columns = 14
features = 768


def get_inputs():
    return [torch.randn(batch_size, channels, rows * patch, columns * patch)]


def get_init_inputs():
    return [channels, features, patch, rows * columns]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 3, "patch": 6, "rows": 7, "columns": 9, "features": 119}
TAGS = ("conv", "layout", "elementwise")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "small patches", "sizes": {"batch_size": 64, "patch": 8, "rows": 28, "columns": 28, "features": 384}},
    {"name": "half precision", "sizes": {"patch": 14, "rows": 16, "columns": 16, "features": 1024}, "dtype": "float16"},
    {"name": "odd", "sizes": {"batch_size": 251, "patch": 15, "rows": 13, "columns": 17, "features": 767}},
]
RANGES = {"rows": (7, 24), "columns": (7, 24)}
