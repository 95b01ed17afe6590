import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, mask):
        keep = mask.unsqueeze(-1).to(x.dtype)
        return (x * keep).sum(1) / keep.sum(1)


def get_inputs():
    mask = torch.ones(16, 256, dtype=torch.bool)
    mask[:, -32:] = False
    return [torch.randn(16, 256, 64), mask]


def get_init_inputs():
    return []
