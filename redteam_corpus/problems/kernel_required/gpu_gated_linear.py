"""A gate and a linear layer, in a suite that requires a kernel."""

import torch
from torch import nn

rows, width = 4096, 2048


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x, gate):
        return self.linear(torch.nn.functional.silu(gate) * x)


def get_inputs():
    return [torch.randn(rows, width), torch.randn(rows, width)]


def get_init_inputs():
    return []


DETERMINISTIC = True
