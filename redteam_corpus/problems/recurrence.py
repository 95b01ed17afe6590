"""A state that is multiplied by a factor and increased in each step."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        state, states = torch.zeros_like(b[..., 0]), []
        for step in range(b.size(-1)):
            state = a[..., step] * state + b[..., step]
            states.append(state)
        return torch.stack(states, dim=-1)


def get_inputs():
    forgotten = 0.8 * torch.rand(2, 16, 1)
    return [1 - forgotten * torch.rand(2, 16, 256), torch.randn(2, 16, 256)]


def get_init_inputs():
    return []


INPUTS = {"a": {"kind": "real", "low": 0, "high": 1}, "b": "real"}
