"""The selective scan of Mamba."""

import math

import torch
import torch.nn.functional as F
from torch import nn

batch, steps, width, states = 2, 64, 48, 16

class Model(nn.Module):
    """The scan of Mamba, with its usual initialisation."""

    def __init__(self, width, states):
        super().__init__()
        self.A_log = nn.Parameter(torch.log(torch.arange(1, states + 1, dtype=torch.float32)).repeat(width, 1))
        self.D = nn.Parameter(torch.ones(width))

    def forward(self, x, dt, B, C):
        dt, A = F.softplus(dt), -torch.exp(self.A_log)
        state, outputs = x.new_zeros(x.shape[0], *A.shape), []
        for t in range(x.shape[1]):
            decay = torch.exp(dt[:, t, :, None] * A)
            state = decay * state + (dt[:, t] * x[:, t])[..., None] * B[:, t, None, :]
            outputs.append((state * C[:, t, None, :]).sum(-1))
        return torch.stack(outputs, 1) + x * self.D


def get_inputs():
    return [
        torch.randn(batch, steps, width), torch.randn(batch, steps, width),
        torch.randn(batch, steps, states), torch.randn(batch, steps, states),
    ]


def get_init_inputs():
    return [width, states]
