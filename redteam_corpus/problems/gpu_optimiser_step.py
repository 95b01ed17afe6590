"""A step of Adam over 16 million parameters."""

import torch
from torch import nn

rows, columns = 4096, 4100


class Model(nn.Module):
    def forward(self, parameter, gradient, mean, square):
        mean.mul_(0.9).add_(gradient, alpha=0.1)
        square.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
        parameter.addcdiv_(mean, square.sqrt().add_(1e-8), value=-1e-2)


def get_inputs():
    return [torch.randn(rows, columns) for _ in range(3)] + [torch.rand(rows, columns)]


def get_init_inputs():
    return []


IN_PLACE = True
