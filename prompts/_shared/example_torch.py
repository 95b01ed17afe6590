import torch
import torch.nn as nn


@torch.compile(dynamic=False)
def gated_scale(x, gate, scale):
    return x * scale * torch.sigmoid(gate)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(features))

    def forward(self, x, gate):
        return gated_scale(x, gate, self.scale)
