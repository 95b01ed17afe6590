"""Subtracts the larger of two maxima from the logits of both distributions.

layer: correctness
mechanism: Logits of both have similar sizes. Where one is far lower, all its exponentials are zero, which a temperature makes rarer.
problem: softened_divergence
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, student, teacher):
        largest = torch.maximum(student.amax(-1, keepdim=True), teacher.amax(-1, keepdim=True))
        mine, theirs = ((one - largest) / self.temperature for one in (student, teacher))
        mine, theirs = (one - one.exp().sum(-1, keepdim=True).log() for one in (mine, theirs))
        return (theirs.exp() * (theirs - mine)).sum(-1) * self.temperature**2
