"""Sets its inputs to zero after computing, so that a reference run later sees zeros.

layer: correctness
mechanism: An evaluator that runs the reference after the candidate on the same tensors computes on changed inputs.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        a.zero_()
        b.zero_()
        return torch.zeros_like(a)
