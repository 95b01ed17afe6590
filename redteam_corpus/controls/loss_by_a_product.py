"""Multiplies targets and logarithms, and takes away the sum of the targets times the logarithm of the sum.

mechanism: Any targets are right, not only rows with one mark.
problem: loss_of_marked_classes
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, logits, targets):
        return targets.sum(dim=1) * logits.logsumexp(dim=1) - torch.einsum("rc,rc->r", targets, logits)
