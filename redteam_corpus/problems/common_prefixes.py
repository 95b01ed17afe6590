"""The lengths of the common prefixes of prompts and cached sequences."""

import torch
from torch import nn

INPUTS = {"prompts": {"kind": "index", "below": 50000}, "cached": {"kind": "index", "below": 50000}}


class Model(nn.Module):
    def forward(self, prompts, cached):
        return (prompts[:, None, :] == cached).long().cumprod(-1).sum(-1)


def get_inputs():
    cached = torch.randint(0, 50000, (16, 96))
    prompts = torch.randint(0, 50000, (24, 96))
    is_common = torch.arange(96) < torch.randint(0, 24, (24, 1))
    return [torch.where(is_common, cached[torch.randint(0, 16, (24,))], prompts), cached]


def get_init_inputs():
    return []
