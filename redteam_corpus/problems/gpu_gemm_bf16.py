"""Linear layer in bfloat16."""

import torch
from torch import nn

tokens, inner, outer = 4096, 2048, 4096


class Model(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = nn.Parameter((torch.randn(outer, inner) / inner**0.5).to(torch.bfloat16))
        self.bias = nn.Parameter(torch.randn(outer).to(torch.bfloat16))

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight, self.bias)


def get_inputs():
    return [torch.randn(tokens, inner).to(torch.bfloat16)]


def get_init_inputs():
    return [inner, outer]
