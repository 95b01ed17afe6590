"""Draws as the reference does, multiplies half of a symmetric product, and mirrors it.

mechanism: It draws the same numbers in its own call, and computes less by a property that holds for each of them.
problem: gpu_random_features
expected: correct
device: gpu
timed: yes
"""

import torch
from torch import nn

BLOCK = 1024


class ModelNew(nn.Module):
    def forward(self, x):
        width = x.shape[1]
        drawn = torch.randn(width, width, device=x.device)
        gram = torch.empty_like(drawn)
        for begin in range(0, width, BLOCK):
            end = begin + BLOCK
            torch.mm(drawn[begin:end], drawn[:end].t(), out=gram[begin:end, :end])
            if begin:
                gram[:begin, begin:end].copy_(gram[begin:end, :begin].t())
        return x @ gram.mul_(1.0 / 64.0).tanh_()
