"""Places of points in their cells, and how many points each bucket of cells has."""

import torch
from torch import nn

points_of, buckets, edge = 2000, 256, 0.5


class Model(nn.Module):
    def forward(self, points):
        cells = torch.floor(points / edge)
        keys = (cells.long() * torch.tensor([1, 31, 961], device=points.device)).sum(dim=1) % buckets
        return points - edge * (cells + 0.5), torch.bincount(keys, minlength=buckets)


def get_inputs():
    return [20 * torch.rand(points_of, 3)]


def get_init_inputs():
    return []


INPUTS = {"points": "real"}
