"""Weights added up per bin of the positions' range, as when particles deposit charge on a grid."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, positions, weights):
        bins = (positions * self.bins).long()
        return torch.bincount(bins, weights, self.bins)


particles = 33554432
bins = 4096


def get_inputs():
    # Few positions per bin, away from its edges, so that rounding does not decide; the first bins are the fullest.
    bin_of = (torch.rand(particles) ** 2 * bins).floor()
    offset = (1 + torch.randint(0, 7, (particles,))) / 8
    return [(bin_of + offset) / bins, 0.5 + torch.rand(particles)]


def get_init_inputs():
    return [bins]


INPUTS = {"positions": "as_drawn", "weights": "real"}
SMALL = {"particles": 100003, "bins": 211}
TAGS = ("histogram", "scatter")
DISTRIBUTIONS = ("as_given", "scale_1e-12")
CASES = [
    {"name": "given"},
    {"name": "few bins", "sizes": {"bins": 64}},
    {"name": "many bins", "sizes": {"bins": 262144}},
    {"name": "odd", "sizes": {"particles": 33554393, "bins": 4093}},
]
RANGES = {"bins": (500, 8000)}
