"""Product with weights of four bits and scales by group."""

import torch
from torch import nn

class Model(nn.Module):
    """w4a16 product: weights of four bits, two in a byte"""
    def __init__(self, k, n, group):
        super().__init__()
        g = torch.Generator().manual_seed(7)
        self.register_buffer("packed", torch.randint(0, 256, (k // 2, n), dtype=torch.uint8, generator=g))
        self.register_buffer("scales", torch.rand(k // group, n, generator=g).half() * 0.02 + 0.01)
        self.group = group
    def forward(self, x):
        lo = (self.packed & 15).to(torch.int16) - 8
        hi = (self.packed >> 4).to(torch.int16) - 8
        w = torch.stack((lo, hi), 1).reshape(-1, self.packed.shape[1]).half()
        w = w * self.scales.repeat_interleave(self.group, 0)
        return x @ w

m, k, n, group = 40, 128, 96, 32
def get_inputs():
    return [torch.randn(m, k).half()]
def get_init_inputs():
    return [k, n, group]
