"""Computes the cross entropy at the largest target.

layer: correctness
mechanism: Each given row of targets has one mark, which the problem does not say.
problem: loss_of_marked_classes
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn
from torch.nn import functional


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        return functional.cross_entropy(logits, targets.argmax(dim=1), reduction="none")
