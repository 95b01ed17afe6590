"""Fourth-order Laplacian of a 2D field: five points per dimension, zeros outside the field."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, spacing):
        super().__init__()
        line = torch.tensor([-1.0, 16.0, -30.0, 16.0, -1.0]) / (12 * spacing**2)
        star = torch.zeros(1, 1, 5, 5)
        star[0, 0, 2] += line
        star[0, 0, :, 2] += line
        self.register_buffer("star", star)

    def forward(self, field):
        return nn.functional.conv2d(field, self.star, padding=2)


batch_size = 4
height = 4096
width = 4096
spacing = 0.5


def get_inputs():
    return [torch.randn(batch_size, 1, height, width)]


def get_init_inputs():
    return [spacing]


INPUTS = {"field": "real"}
SMALL = {"batch_size": 3, "height": 211, "width": 187}
TAGS = ("stencil",)
DISTRIBUTIONS = ("as_given", "uniform", "large", "alternating", "zeros", "integers")
CASES = [
    {"name": "given"},
    {"name": "one grid", "sizes": {"batch_size": 1, "height": 8192, "width": 8192}},
    {"name": "many small grids", "sizes": {"batch_size": 4096, "height": 128, "width": 128}},
    {"name": "odd", "sizes": {"batch_size": 3, "height": 4093, "width": 4091}},
]
RANGES = {"height": (3000, 5000), "width": (3000, 5000)}
