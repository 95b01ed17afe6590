"""Means of the points within a distance of each point, and how many they are."""

import torch
from torch import nn

points_of, radius = 300, 0.5


class Model(nn.Module):
    def forward(self, points):
        near = (points[:, None] - points).square().sum(dim=-1) < radius**2
        counts = near.sum(dim=1, keepdim=True)
        return (near[:, :, None] * points).sum(dim=1) / counts, counts


def get_inputs():
    return [2 * torch.randn(points_of, 3)]


def get_init_inputs():
    return []
