"""Pads the classes to a multiple of 64, weights and bias.

mechanism: The bias of zeros has more elements than the reference's when it is made.
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
        padded = -(-classes // 64) * 64
        self.classes = classes
        self.weight = nn.Parameter(F.pad(head.weight.detach(), (0, 0, 0, padded - classes)))
        self.bias = nn.Parameter(torch.zeros(padded))

    def forward(self, x):
        return F.log_softmax(F.linear(x, self.weight, self.bias)[:, : self.classes], -1)
