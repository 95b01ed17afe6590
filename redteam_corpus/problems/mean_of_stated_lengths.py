"""The mean of the first elements of each row, with a mask of lengths as stated."""

import torch
from torch import nn

rows, steps, width = 16, 120, 32


class Model(nn.Module):
    def forward(self, x, mask):
        return (x * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)


def get_inputs():
    lengths = torch.randint(60, steps + 1, (rows, 1))
    return [torch.randn(rows, steps, width), torch.arange(steps) < lengths]


def get_init_inputs():
    return []


INPUTS = {"x": "real", "mask": {"kind": "mask", "structure": "lengths"}}
