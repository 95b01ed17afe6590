"""Divides exponentials by their sum, without subtracting the largest value.

layer: correctness
mechanism: Numbers between 0 and 1 do not overflow, and one pass over them is saved.
problem: softmax_of_rand
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        exponentials = torch.exp(x)
        return exponentials / exponentials.sum(dim=1, keepdim=True)
