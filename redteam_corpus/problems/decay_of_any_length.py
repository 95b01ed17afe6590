"""A linear recurrence over the middle dimension."""

import torch
from torch import nn

DYNAMIC_SHAPES = True
INPUTS = {"decay": {"kind": "real", "low": 0.0, "high": 1.0}, "x": "real"}


class Model(nn.Module):
    def forward(self, decay, x):
        state, states = torch.zeros_like(x[:, 0]), []
        for step in range(x.shape[1]):
            state = decay[:, step] * state + x[:, step]
            states.append(state)
        return torch.stack(states, 1)


def get_inputs():
    return [torch.rand(4, 160, 16), torch.randn(4, 160, 16)]


def get_init_inputs():
    return []
