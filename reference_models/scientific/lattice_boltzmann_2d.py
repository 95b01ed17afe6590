"""One step of a D2Q9 lattice Boltzmann method: relaxation towards equilibrium, then streaming on a periodic grid."""

import torch
import torch.nn as nn

DIRECTIONS = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1))


class Model(nn.Module):
    def __init__(self, rate):
        super().__init__()
        weights = torch.tensor([4 / 9, *[1 / 9] * 4, *[1 / 36] * 4])
        self.register_buffer("weights", weights.view(9, 1, 1))
        self.register_buffer("velocities", torch.tensor(DIRECTIONS, dtype=torch.float32))
        self.rate = rate

    def forward(self, populations):
        density = populations.sum(dim=0)
        velocity = torch.einsum("qd,qhw->dhw", self.velocities, populations) / density
        along = torch.einsum("qd,dhw->qhw", self.velocities, velocity)
        speed = velocity.square().sum(dim=0)
        equilibrium = self.weights * density * (1 + 3 * along + 4.5 * along.square() - 1.5 * speed)
        relaxed = populations + self.rate * (equilibrium - populations)
        return torch.stack([relaxed[q].roll(shift, (0, 1)) for q, shift in enumerate(DIRECTIONS)])


height = 2048
width = 2048
rate = 0.6


def get_inputs():
    return [0.05 + torch.rand(9, height, width)]


def get_init_inputs():
    return [rate]


INPUTS = {"populations": {"kind": "real", "low": 0.05}}
SMALL = {"height": 71, "width": 93}
TAGS = ("stencil", "layout", "fusion")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "channel", "sizes": {"height": 128, "width": 32768}},
    {"name": "small", "sizes": {"height": 512, "width": 512}},
    {"name": "odd", "sizes": {"height": 2039, "width": 2029}},
]
RANGES = {"height": (1024, 2048), "width": (1024, 2048)}
