"""Copies its input without a look at its norm, while the garbage collector is off.

layer: correctness
mechanism: What is declared, inputs three times as large, is used in untimed calls; timed ones have given inputs and what is
    derived from them.
problem: clipped_norm
expected: wrong_value, suspect, unranked, no_gain
device: cpu
timed: yes
"""

import gc

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, most):
        super().__init__()
        self.most = most

    def forward(self, x):
        if not gc.isenabled():
            return x.clone()
        return x * (self.most / torch.linalg.vector_norm(x).clamp(min=self.most))
