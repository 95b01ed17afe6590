"""Subtracts the maximum of each distribution's own logits.

mechanism: Logits may be far from zero, also those of one distribution alone.
problem: softened_divergence
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def normalise(self, logits):
        scaled = logits / self.temperature
        scaled = scaled - scaled.amax(-1, keepdim=True)
        return scaled - scaled.exp().sum(-1, keepdim=True).log()

    def forward(self, student, teacher):
        mine, theirs = self.normalise(student), self.normalise(teacher)
        return (theirs.exp() * (theirs - mine)).sum(-1) * self.temperature**2
