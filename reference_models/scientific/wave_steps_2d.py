"""Several leapfrog steps of the wave equation on a periodic 2D grid, with a speed per cell."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, height, width, steps):
        super().__init__()
        # Squared Courant numbers, below the limit of stability.
        self.register_buffer("courant", 0.1 + 0.3 * torch.rand(height, width))
        self.steps = steps

    def forward(self, now, before):
        for _ in range(self.steps):
            around = now.roll(1, 0) + now.roll(-1, 0) + now.roll(1, 1) + now.roll(-1, 1)
            now, before = 2 * now - before + self.courant * (around - 4 * now), now
        return now, before


height = 2048
width = 2048
steps = 8


def get_inputs():
    return [torch.randn(height, width), torch.randn(height, width)]


def get_init_inputs():
    return [height, width, steps]


INPUTS = {"now": "real", "before": "real"}
SMALL = {"height": 131, "width": 173, "steps": 5}
TAGS = ("stencil", "iteration")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "small", "sizes": {"height": 512, "width": 512, "steps": 32}},
    {"name": "one step", "sizes": {"height": 8192, "width": 8192, "steps": 1}},
    {"name": "odd", "sizes": {"height": 2039, "width": 2027, "steps": 7}},
]
RANGES = {"height": (1024, 2048), "width": (1024, 2048)}
