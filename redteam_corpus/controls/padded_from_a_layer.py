"""Pads the classes to a multiple of 64, from a layer that it makes for that.

mechanism: Its parameters have other names and shapes, and are made of a layer that is no part of it.
problem: padded_vocabulary
expected: correct
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        head = nn.Linear(width, classes)
        nn.init.normal_(head.weight, std=0.05)
        nn.init.zeros_(head.bias)
        more = -classes % 64
        self.classes = classes
        self.register_buffer("weight", F.pad(head.weight.detach(), (0, 0, 0, more)).t().contiguous())
        self.register_buffer("bias", F.pad(head.bias.detach(), (0, more)))

    def forward(self, x):
        return F.log_softmax(torch.addmm(self.bias, x, self.weight)[:, : self.classes], -1)
