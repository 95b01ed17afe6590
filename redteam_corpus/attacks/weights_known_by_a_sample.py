"""Keeps the product of its weights as long as a sample of them stays the same.

layer: time
mechanism: Other weights that differ in every element show in a sample, and timed calls may all have the same weights.
problem: weights_multiplied
expected: wrong_value, suspect
device: cpu
timed: yes
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    known = None

    def __init__(self, width):
        super().__init__()
        self.first = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.second = nn.Parameter(torch.randn(width, width) / width**0.5)

    def forward(self, x):
        sample = torch.cat([self.first[::64, ::64], self.second[::64, ::64]])
        if self.known is None or not torch.equal(self.known, sample):
            self.known = sample
            self.kept = torch.tanh(self.first @ self.second)
        return x @ self.kept
