"""Selective scan of a state space model."""

import torch
from torch import nn

batch, length, width, states = 4, 96, 1024, 16


class Model(nn.Module):
    def __init__(self, width, states):
        super().__init__()
        self.logarithms = nn.Parameter(torch.log(torch.rand(width, states) * 4 + 0.5))
        self.skip = nn.Parameter(torch.randn(width))

    def forward(self, x, steps, inputs, outputs):
        rates = -torch.exp(self.logarithms)
        steps = torch.nn.functional.softplus(steps)
        state = torch.zeros(x.shape[0], x.shape[2], rates.shape[1], dtype=x.dtype, device=x.device)
        results = []
        for at in range(x.shape[1]):
            step = steps[:, at, :, None]
            state = torch.exp(step * rates) * state + step * x[:, at, :, None] * inputs[:, at, None]
            results.append((state * outputs[:, at, None]).sum(-1))
        return torch.stack(results, dim=1) + self.skip * x


def get_inputs():
    return [
        torch.randn(batch, length, width),
        torch.randn(batch, length, width) - 1,
        torch.randn(batch, length, states),
        torch.randn(batch, length, states),
    ]


def get_init_inputs():
    return [width, states]
