"""Packs its weights at construction, and again in a hook whenever a state dict is loaded.

mechanism: What a module keeps beside its weights follows them where PyTorch says when weights have been loaded.
problem: changing_linear
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class Packed(nn.Linear):
    def __init__(self, size):
        super().__init__(size, size)
        self.register_load_state_dict_post_hook(lambda module, _: module.pack())
        self.pack()

    def pack(self):
        self.packed = self.weight.detach().t().contiguous()

    def forward(self, x):
        return torch.addmm(self.bias, x, self.packed)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        torch.randn(3)  # so that its weights are others than the reference's
        self.linear = Packed(size)

    def forward(self, x):
        return self.linear(x).clamp_min_(0)
