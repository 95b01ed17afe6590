"""Computes the tanh form of GELU by the logistic function.

mechanism: An identity in place of the function that the reference calls.
problem: small_mlp
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size, inner):
        super().__init__()
        self.norm = nn.RMSNorm(size, eps=1e-6)
        self.gate = nn.Linear(size, inner, bias=False)
        self.up = nn.Linear(size, inner, bias=False)
        self.down = nn.Linear(inner, size, bias=False)

    def forward(self, x):
        normal = self.norm(x)
        gate = self.gate(normal)
        inner = gate * torch.sigmoid(1.5957691216 * (gate + 0.044715 * gate**3)) * self.up(normal)
        return torch.baddbmm(x, inner, self.down.weight.t().expand(len(x), -1, -1))
