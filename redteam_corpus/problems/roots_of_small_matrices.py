"""Square roots of symmetric positive definite matrices of two rows."""

import torch
from torch import nn

count = 400


class Model(nn.Module):
    def forward(self, spread):
        values, vectors = torch.linalg.eigh(spread)
        return (vectors * values.sqrt().unsqueeze(1)) @ vectors.mT


def get_inputs():
    drawn = torch.randn(count, 2, 2)
    return [drawn @ drawn.mT + 0.5 * torch.eye(2)]


def get_init_inputs():
    return []


INPUTS = {"spread": "positive_definite"}
