"""Divergence of a flux in 3D, with a conductivity per cell averaged on the faces, and none through the boundary."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, field, conductivity):
        result = torch.zeros_like(field)
        for dim in range(3):
            size = field.size(dim) - 1
            face = (conductivity.narrow(dim, 0, size) + conductivity.narrow(dim, 1, size)) / 2
            flux = face * field.diff(dim=dim)
            result.narrow(dim, 0, size).add_(flux)
            result.narrow(dim, 1, size).sub_(flux)
        return result


depth = height = width = 384


def get_inputs():
    shape = (depth, height, width)
    return [torch.randn(shape), 0.2 + torch.rand(shape)]


def get_init_inputs():
    return []


INPUTS = {"field": "real", "conductivity": "real"}
SMALL = {"depth": 37, "height": 43, "width": 51}
TAGS = ("stencil", "fusion")
DISTRIBUTIONS = ("as_given", "uniform", "large", "alternating", "zeros")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "thin", "sizes": {"depth": 12, "height": 2048, "width": 2304}},
    {"name": "small", "sizes": {"depth": 128, "height": 128, "width": 128}},
    {"name": "odd", "sizes": {"depth": 383, "height": 379, "width": 389}},
]
RANGES = {"depth": (192, 384), "height": (192, 384), "width": (192, 384)}
