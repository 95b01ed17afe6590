"""Solution of many tridiagonal systems by parallel cyclic reduction."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, lower, diagonal, upper, right):
        pad, size, step = nn.functional.pad, right.size(-1), 1
        while step < size:
            before, after = (step, 0), (0, step)
            from_before = -lower[..., step:] / diagonal[..., :-step]
            from_after = -upper[..., :-step] / diagonal[..., step:]
            new_lower = pad(from_before * lower[..., :-step], before)
            new_upper = pad(from_after * upper[..., step:], after)
            change = pad(from_before * right[..., :-step], before) + pad(from_after * right[..., step:], after)
            right = right + change
            change = pad(from_before * upper[..., :-step], before) + pad(from_after * lower[..., step:], after)
            diagonal = diagonal + change
            lower, upper = new_lower, new_upper
            step *= 2
        return right / diagonal


batch_size = 8192
size = 512


def get_inputs():
    shape = (batch_size, size)
    lower, upper, diagonal = torch.rand(shape) - 0.5, torch.rand(shape) - 0.5, 1.2 + torch.rand(shape)
    # Every second system is one of diffusion, whose solution depends on distant values, too.
    for band, value in ((lower, -0.5), (upper, -0.5), (diagonal, 1.0)):
        band[::2] = value + 0.001 * torch.rand(shape)[::2]
    lower[..., 0] = 0
    upper[..., -1] = 0
    # Dominant diagonals, so that no pivoting is needed.
    return [lower, diagonal, upper, torch.randn(shape)]


def get_init_inputs():
    return []


INPUTS = {
    "lower": {"kind": "real", "low": -0.5, "high": 0.5},
    "diagonal": {"kind": "real", "low": 1},
    "upper": {"kind": "real", "low": -0.5, "high": 0.5},
    "right": "real",
}
SMALL = {"batch_size": 53, "size": 173}
TAGS = ("solver", "scan")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "long", "sizes": {"batch_size": 256, "size": 65536}},
    {"name": "short", "sizes": {"batch_size": 524288, "size": 32}},
    {"name": "odd", "sizes": {"batch_size": 8191, "size": 509}},
]
RANGES = {"size": (200, 1024)}
