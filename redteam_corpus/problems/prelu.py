import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.act = nn.PReLU(channels)

    def forward(self, x):
        return self.act(x)


def get_inputs():
    return [torch.randn(64, 128, 33)]


def get_init_inputs():
    return [128]
